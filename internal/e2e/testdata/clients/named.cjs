// Opens a page with Chromium and Playwright, through the proxy of the environment, which it uses for this machine too.
const { chromium } = require("playwright-core");
(async () => {
  const proxy = { server: process.env.http_proxy, bypass: "<-loopback>" };
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"], proxy });
  await (await browser.newPage()).goto(process.argv[2]);
  await browser.close();
})();
