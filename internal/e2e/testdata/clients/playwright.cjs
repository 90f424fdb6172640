// Gets a URL with Playwright and Chromium, by the proxy of the environment.
const { chromium } = require('./node_modules/playwright-core')

// Without a URL the question was whether this would work.
if (process.argv[2]) {
  (async () => {
    const server = process.env.all_proxy.replace('socks5h:', 'socks5:')
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'], proxy: { server } })
    const page = await browser.newPage()
    const response = await page.goto(process.argv[2])
    console.log('status', response.status())
    for (const { name, value } of await response.headersArray()) console.log(`${name}: ${value}`)
    console.log(await response.text())
    await browser.close()
  })()
}
