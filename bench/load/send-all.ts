import { lengthOf, type Requests, rawRequest, requestAt } from '../requests.ts'
import { CONNECTIONS } from './load.ts'
import { runSockets } from './sockets.ts'

/** Maximum seconds. */
const LIMIT = 600

/**
 * Sends each request once. A load of fixed duration would reach a number of them that depends on the speed of the server.
 * @throws {Error} if a response has an unexpected status.
 */
export const sendAll = async (url: string, requests: Requests): Promise<void> => {
  const count = lengthOf(requests)
  let sent = 0
  const next = (): string => {
    sent += 1
    return rawRequest(requestAt(requests, sent - 1))
  }
  const connections = Math.min(CONNECTIONS, count)
  const load = { url, connections, seconds: LIMIT, requests: count, next }
  const { latencies } = await runSockets(load)
  for (const status of latencies.keys()) {
    if (status !== requests.status) throw new Error(`responses had status ${[...latencies.keys()]}`)
  }
}
