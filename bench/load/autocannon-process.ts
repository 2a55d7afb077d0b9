/** Runs autocannon with options from a file (the argument), and writes the result as JSON. */
import { readFileSync } from 'node:fs'
import run, { type Request } from 'autocannon'
import { lengthOf, requestAt } from '../requests.ts'
import { CONNECTIONS, type LoadOptions, type LoadResult } from './load.ts'

const { url, requests, seconds } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as LoadOptions

let clients = 0

const result = await run({
  url,
  connections: CONNECTIONS,
  duration: seconds,
  // Each connection gets a share of the requests: preparing all of them for each takes autocannon minutes.
  setupClient(client) {
    const share: Request[] = []
    const step = lengthOf(requests) < CONNECTIONS ? 1 : CONNECTIONS
    for (let index = clients % step; index < lengthOf(requests); index += step) {
      share.push(requestAt(requests, index) as Request)
    }
    clients += 1
    client.setRequests(share)
  },
})

const total = result['2xx'] + result.non2xx
const unexpected = requests.status < 300 ? result.non2xx : result['2xx']
const report: LoadResult = {
  requests: total,
  seconds: result.duration,
  p50: result.latency.p50,
  p99: result.latency.p99,
  errors: result.errors + result.timeouts + unexpected,
}
process.stdout.write(JSON.stringify(report))
