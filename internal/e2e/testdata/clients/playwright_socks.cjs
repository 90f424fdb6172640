// Gets a URL with Playwright and Chromium, by SOCKS5: node playwright_socks.cjs socks5://HOST:PORT URL
const { chromium } = require('./node_modules/playwright-core')

// Without a URL the question was whether this would work.
if (process.argv[3]) {
  (async () => {
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'], proxy: { server: process.argv[2] } })
    const page = await browser.newPage({ ignoreHTTPSErrors: true })
    const response = await page.goto(process.argv[3])
    console.log('status', response.status())
    for (const { name, value } of await response.headersArray()) console.log(`${name}: ${value}`)
    console.log(await response.text())
    await browser.close()
  })()
}
