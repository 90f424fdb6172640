// Gets a URL with undici from npm.
const undici = require('./node_modules/undici')
undici.setGlobalDispatcher(new undici.EnvHttpProxyAgent())

// Without a URL the question was whether this would work.
if (process.argv[2]) require('./print.cjs')(undici.fetch, process.argv[2])
