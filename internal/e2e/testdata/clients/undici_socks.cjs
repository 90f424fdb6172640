// Gets a URL with undici from npm, by SOCKS5: node undici_socks.cjs socks5://HOST:PORT URL
const undici = require('./node_modules/undici')

// Without a URL the question was whether this would work.
if (!undici.Socks5ProxyAgent) throw new Error('undici has no Socks5ProxyAgent')
if (process.argv[3]) {
  undici.setGlobalDispatcher(new undici.Socks5ProxyAgent(process.argv[2]))
  require('./print.cjs')(undici.fetch, process.argv[3])
}
