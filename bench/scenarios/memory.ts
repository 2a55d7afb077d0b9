import { setTimeout as delay } from 'node:timers/promises'
import { sendAll } from '../load/sockets.ts'
import { withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import { type Bench, type Finding, finding, type Scenario } from '../scenario.ts'
import { startService } from '../stores.ts'

const TOKENS = 100_000
const MANY = 1_000_000

/** Milliseconds after start or load until a process is idle. */
const SETTLE = 30_000

const MB = 1_000_000

const residentMemory = async (bench: Bench): Promise<readonly Finding[]> => {
  const store = await bench.store(TOKENS)
  const requests = get('/account', (await store.tokens(TOKENS)).map(bearer))
  // The first start of new code strips its types, which leaves 9 MB, and fills the compile cache.
  await withServers([() => startService(store)], async () => undefined)
  return withServers([() => startService(store)], async server => {
    await delay(SETTLE)
    const idle = await server.ask('rss')
    await sendAll(server.url, requests)
    await delay(SETTLE)
    const full = await server.ask('rss')
    return [
      finding('idle', idle / MB, 'MB', { atMost: 120 }),
      finding('more with 100,000 cached tokens', (full - idle) / MB, 'MB', { atMost: 90 }),
    ]
  })
}

const cachedTokens = async (bench: Bench): Promise<readonly Finding[]> => {
  const store = await bench.store(MANY)
  const requests = get('/account', (await store.tokens(MANY)).map(bearer))
  // With some room, so that hardly any bucket of the index is full.
  const env = { CACHE_SIZE: String(1.1 * MANY) }
  return withServers([() => startService(store, env)], async server => {
    const before = { heap: await server.ask('heap'), buffers: await server.ask('buffers') }
    await sendAll(server.url, requests)
    await delay(SETTLE)
    const total = (await server.ask('heap')) - before.heap
    const buffers = (await server.ask('buffers')) - before.buffers
    await server.ask('watchPauses')
    await sendAll(server.url, requests)
    return [
      finding('heap of one of 1,000,000 tokens', (total - buffers) / MANY, 'bytes', { atMost: 400 }),
      finding('outside of the heap', buffers / MANY, 'bytes'),
      finding('longest pause by garbage collection', await server.ask('pause'), 'ms', { atMost: 10 }),
    ]
  })
}

export const memory: Scenario = {
  name: 'memory',
  title: 'Resident memory, idle and with 100,000 cached tokens; a cached token, and pauses, with 1,000,000',
  run: async bench => [...(await residentMemory(bench)), ...(await cachedTokens(bench))],
}
