import { lengthOf, type Requests, rawRequest, requestAt } from '../requests.ts'
import { CONNECTIONS } from './load.ts'
import { runSockets } from './sockets.ts'

/** Seconds that it may take. */
const LIMIT = 600

/**
 * Sends each request once, however long that takes: how many a load comes to depends on what it costs to meet them.
 * @throws {Error} when one is answered with another status than was expected.
 */
export const sendAll = async (url: string, requests: Requests): Promise<void> => {
  const count = lengthOf(requests)
  let sent = 0
  const next = (): string => {
    sent += 1
    return rawRequest(requestAt(requests, sent - 1))
  }
  const load = { url, connections: CONNECTIONS, seconds: LIMIT, requests: count, next }
  const { latencies } = await runSockets(load)
  for (const status of latencies.keys()) {
    if (status !== requests.status) throw new Error(`requests were answered ${[...latencies.keys()]}`)
  }
}
