import { setTimeout as delay } from 'node:timers/promises'
import { runSockets } from '../load/sockets.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import { type Scenario, single } from '../scenario.ts'

const IDENTITIES = 100_000

/** Milliseconds until a process that was just started, or just loaded, counts as idle. */
const SETTLE = 30_000

const MB = 1_000_000

export const memory: Scenario = {
  name: 'memory',
  title: 'Resident memory, idle and with 100,000 identities cached',
  run: async bench => {
    const store = await bench.store(IDENTITIES)
    const requests = store
      .tokens(IDENTITIES)
      .map(token => rawRequest({ method: 'GET', path: '/account', headers: bearer(token) }))
    return withServers([() => startService(store)], async server => {
      await delay(SETTLE)
      const idle = await server.ask('rss')
      const heapBefore = await server.ask('heap')
      let sent = 0
      const { latencies } = await runSockets({
        url: server.url,
        connections: 32,
        seconds: 600,
        requests: IDENTITIES,
        next() {
          sent += 1
          return requests[sent % IDENTITIES] ?? ''
        },
      })
      if (latencies.size !== 1) throw new Error(`requests were answered ${[...latencies.keys()]}`)
      await delay(SETTLE)
      const heap = (await server.ask('heap')) - heapBefore
      const full = await server.ask('rss')
      return [
        { what: 'idle', value: single(idle / MB), unit: 'MB', target: { atMost: 120 } },
        {
          what: 'more with 100,000 identities',
          value: single((full - idle) / MB),
          unit: 'MB',
          target: { atMost: 90 },
        },
        { what: 'heap of one identity', value: single(heap / IDENTITIES), unit: 'bytes' },
      ]
    })
  },
}
