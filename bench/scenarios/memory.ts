import { setTimeout as delay } from 'node:timers/promises'
import { sendAll } from '../load/send-all.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import { type Scenario, single } from '../scenario.ts'

const TOKENS = 100_000

/** Milliseconds after start or load until a process is idle. */
const SETTLE = 30_000

const MB = 1_000_000

export const memory: Scenario = {
  name: 'memory',
  title: 'Resident memory, idle and with 100,000 cached tokens',
  run: async bench => {
    const store = await bench.store(TOKENS)
    const requests = get('/account', (await store.tokens(TOKENS)).map(bearer))
    return withServers([() => startService(store)], async server => {
      await delay(SETTLE)
      const idle = await server.ask('rss')
      const heapBefore = await server.ask('heap')
      await sendAll(server.url, requests)
      await delay(SETTLE)
      const heap = (await server.ask('heap')) - heapBefore
      const full = await server.ask('rss')
      return [
        { what: 'idle', value: single(idle / MB), unit: 'MB', target: { atMost: 120 } },
        {
          what: 'more with 100,000 cached tokens',
          value: single((full - idle) / MB),
          unit: 'MB',
          target: { atMost: 90 },
        },
        { what: 'heap of one cached token', value: single(heap / TOKENS), unit: 'bytes' },
      ]
    })
  },
}
