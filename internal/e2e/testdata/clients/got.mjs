// Gets a URL with got, which uses Node's own agent, and so the proxy in the environment.
import got from 'got'

// Without a URL the question was whether this would work.
if (process.argv[2]) {
  const response = await got(process.argv[2], { throwHttpErrors: false, retry: JSON.parse(process.argv[3] ?? '{}') })
  console.log(response.statusCode, 'after', response.retryCount, 'retries')
}
