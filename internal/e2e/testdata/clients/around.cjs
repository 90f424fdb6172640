// Counts what a browser sends around its proxy: HTTP requests to the own machine, and UDP packets
// of WebRTC. The arguments are a library, options of its launch as JSON, and a page to open.
const dgram = require("node:dgram"), http = require("node:http"), os = require("node:os");
const [library, options, site] = process.argv.slice(2);

(async () => {
  let requests = 0;
  const server = http.createServer((_, response) => { requests++; response.end("own machine"); });
  await new Promise(done => server.listen(0, "127.0.0.1", done));

  // WebRTC does not use the loopback interface.
  const address = Object.values(os.networkInterfaces()).flat().find(a => a.family === "IPv4" && !a.internal).address;
  const stun = dgram.createSocket("udp4");
  await new Promise(done => stun.bind(0, address, done));
  const packet = new Promise(done => stun.on("message", () => done(true)));

  const module = require(library);
  const browser = await (module.chromium ?? module).launch(JSON.parse(options));
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.goto(site);
  const gathered = page.evaluate(async url => {
    if (!globalThis.RTCPeerConnection) return false;
    const connection = new RTCPeerConnection({ iceServers: [{ urls: url }] });
    connection.createDataChannel("x");
    await connection.setLocalDescription(await connection.createOffer());
    while (connection.iceGatheringState !== "complete")
      await new Promise(done => connection.addEventListener("icegatheringstatechange", done, { once: true }));
    return false;
  }, `stun:${address}:${stun.address().port}`);
  const udp = await Promise.race([packet, gathered]);
  console.log(`own machine: ${requests > 0}, WebRTC: ${udp}`);
  gathered.catch(() => {}); // it may still wait when the browser is closed
  await browser.close();
  server.close();
  stun.close();
})();
