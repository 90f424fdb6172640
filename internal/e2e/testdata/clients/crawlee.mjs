// Crawls a URL with Crawlee, with its default settings but for those in the second argument, and prints
// what became of it.
import { CheerioCrawler, Configuration, ProxyConfiguration, log } from '@crawlee/cheerio'

log.setLevel(log.LEVELS.OFF)

// Without a URL the question was whether this would work.
if (process.argv[2]) {
  let attempts = 0
  const crawler = new CheerioCrawler({
    proxyConfiguration: new ProxyConfiguration({ proxyUrls: [process.env.http_proxy] }), // it does not read the variable
    preNavigationHooks: [() => { attempts++ }],
    requestHandler ({ response }) { console.log(response.statusCode) },
    failedRequestHandler (_, error) { console.log(error.message) },
    ...JSON.parse(process.argv[3] ?? '{}')
  }, new Configuration({ persistStorage: false }))
  await crawler.run([process.argv[2]])
  console.log(attempts, 'attempts of', crawler.navigationTimeoutMillis / 1000, 's')
}
