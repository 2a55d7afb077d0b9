/** Runs autocannon on the options in the file that is its argument, and writes the result as JSON. */
import { readFileSync } from 'node:fs'
import run from 'autocannon'
import { CONNECTIONS, type LoadOptions, type LoadResult } from './load.ts'

const { url, requests, seconds } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as LoadOptions

let clients = 0

const result = await run({
  url: url + requests.path,
  connections: CONNECTIONS,
  duration: seconds,
  // Each connection takes its share of the tokens: all of them in each would cost autocannon minutes to prepare.
  setupClient(client) {
    const share = requests.tokens.filter((_, index) => index % CONNECTIONS === clients)
    clients += 1
    if (share.length === 0) return
    client.setRequests(
      share.map(token => ({
        method: 'GET',
        path: requests.path,
        headers: { authorization: `Bearer ${token}` },
      })),
    )
  },
})

const report: LoadResult = {
  requests: result['2xx'] + result.non2xx,
  seconds: result.duration,
  p50: result.latency.p50,
  p99: result.latency.p99,
  errors: result.errors + result.timeouts + result.non2xx,
}
process.stdout.write(JSON.stringify(report))
