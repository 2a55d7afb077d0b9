import { setTimeout as delay } from 'node:timers/promises'
import { sendAll } from '../load/send-all.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import { type Finding, type Scenario, single } from '../scenario.ts'

const TOKENS = 100_000
const MANY = 1_000_000

/** Milliseconds after start or load until a process is idle. */
const SETTLE = 30_000

const MB = 1_000_000

export const memory: Scenario = {
  name: 'memory',
  title: 'Resident memory, idle and with 100,000 cached tokens; a cached token, and pauses, with 1,000,000',
  run: async bench => {
    const store = await bench.store(TOKENS)
    const requests = get('/account', (await store.tokens(TOKENS)).map(bearer))
    // The first start of new code strips its types, which leaves 9 MB, and fills the compile cache.
    await withServers([() => startService(store)], () => Promise.resolve())
    const few = await withServers([() => startService(store)], async (server): Promise<Finding[]> => {
      await delay(SETTLE)
      const idle = await server.ask('rss')
      await sendAll(server.url, requests)
      await delay(SETTLE)
      const full = await server.ask('rss')
      return [
        { what: 'idle', value: single(idle / MB), unit: 'MB', target: { atMost: 120 } },
        {
          what: 'more with 100,000 cached tokens',
          value: single((full - idle) / MB),
          unit: 'MB',
          target: { atMost: 90 },
        },
      ]
    })
    const large = await bench.store(MANY)
    const all = get('/account', (await large.tokens(MANY)).map(bearer))
    // With some room, so that hardly any bucket of the index is full.
    const env = { CACHE_SIZE: String(1.1 * MANY) }
    const many = await withServers([() => startService(large, env)], async (server): Promise<Finding[]> => {
      const before = { heap: await server.ask('heap'), buffers: await server.ask('buffers') }
      await sendAll(server.url, all)
      await delay(SETTLE)
      const total = (await server.ask('heap')) - before.heap
      const buffers = (await server.ask('buffers')) - before.buffers
      await server.ask('watchPauses')
      await sendAll(server.url, all)
      const pause = await server.ask('pause')
      return [
        {
          what: 'heap of one of 1,000,000 tokens',
          value: single((total - buffers) / MANY),
          unit: 'bytes',
          target: { atMost: 400 },
        },
        { what: 'outside of the heap', value: single(buffers / MANY), unit: 'bytes' },
        {
          what: 'longest pause by garbage collection',
          value: single(pause),
          unit: 'ms',
          target: { atMost: 10 },
        },
      ]
    })
    return [...few, ...many]
  },
}
