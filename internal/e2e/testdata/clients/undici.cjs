// Gets a URL with undici from npm, or the one that comes with npm itself.
const path = require('node:path')

function load () {
  for (const place of ['./node_modules/undici', path.resolve(process.execPath, '../../lib/node_modules/npm/node_modules/undici')]) {
    try { return require(place) } catch {}
  }
  throw new Error('undici is not installed')
}

const undici = load()
undici.setGlobalDispatcher(new undici.EnvHttpProxyAgent())

// Without a URL the question was whether this would work.
if (process.argv[2]) require('./print.cjs')(undici.fetch, process.argv[2])
