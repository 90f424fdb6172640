// Gets a URL with Node's fetch. Node 22.21 and 24.5 learned to read the proxy
// from the environment; before, undici's EnvHttpProxyAgent does, which comes
// with npm.
const path = require('node:path')

const [major, minor] = process.versions.node.split('.').map(Number)
let fetch = globalThis.fetch
if (major < 22 || (major === 22 && minor < 21) || (major === 24 && minor < 5)) {
  const undici = require(path.resolve(process.execPath, '../../lib/node_modules/npm/node_modules/undici'))
  undici.setGlobalDispatcher(new undici.EnvHttpProxyAgent())
  fetch = undici.fetch
}

async function main (url) {
  const response = await fetch(url)
  console.log('status', response.status)
  for (const [name, value] of response.headers) console.log(`${name}: ${value}`)
  console.log(await response.text())
}

// Without a URL the question was whether this would work.
if (process.argv[2]) main(process.argv[2])
