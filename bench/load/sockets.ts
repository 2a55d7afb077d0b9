/**
 * A load generator with features that the others lack: generated requests, a fixed rate, latencies by status. It needs more CPU
 * than wrk, so it is not used to measure maximum throughput.
 */
import { performance } from 'node:perf_hooks'
import { Connection } from './connection.ts'

export interface SocketLoad {
  /** The URL of the server, without a path. */
  readonly url: string
  readonly connections: number
  readonly seconds: number
  /** Ends the load early, after so many requests. */
  readonly requests?: number
  /** Requests per second, regardless of pending responses; by default each connection sends the next after each response. */
  readonly rate?: number
  /** The bytes of the next request. Responses must have a Content-Length or be chunked. */
  readonly next: () => string
}

export interface Responses {
  readonly seconds: number
  readonly total: number
  /** Milliseconds from the time each request was due, by status. */
  readonly latencies: ReadonlyMap<number, readonly number[]>
}

/** Milliseconds between checks for due requests. */
const PACE = 1

/** Runs a load to its end. Requests that wait for a free connection are late, and their wait counts as latency. */
export const runSockets = async (load: SocketLoad): Promise<Responses> => {
  const { url, connections, seconds, requests = Number.POSITIVE_INFINITY, rate, next } = load
  const latencies = new Map<number, number[]>()
  const open = Array.from({ length: connections }, () => new Connection(url))
  const free = [...open]
  const begin = performance.now()
  const end = begin + seconds * 1_000
  let sent = 0
  let total = 0
  const { promise, resolve } = Promise.withResolvers<void>()

  const send = (connection: Connection, due: number): void => {
    sent += 1
    connection.send(next(), status => {
      total += 1
      const now = performance.now()
      const ofStatus = latencies.get(status)
      if (ofStatus === undefined) latencies.set(status, [now - due])
      else ofStatus.push(now - due)
      if (rate === undefined && now < end && sent < requests) send(connection, now)
      else free.push(connection)
      settle()
    })
  }
  /** Ends the load when no response is pending and no request is due. */
  const settle = (): void => {
    if (free.length === connections && (performance.now() >= end || sent >= requests)) resolve()
  }

  if (rate === undefined) {
    for (const connection of free.splice(0)) send(connection, begin)
    await promise
  } else {
    const pace = setInterval(() => {
      const now = Math.min(performance.now(), end)
      while (sent < requests && sent < ((now - begin) / 1_000) * rate) {
        const connection = free.pop()
        if (connection === undefined) break
        send(connection, begin + (sent / rate) * 1_000)
      }
      settle()
    }, PACE)
    await promise.finally(() => clearInterval(pace))
  }
  for (const connection of open) connection.close()
  return { seconds: (performance.now() - begin) / 1_000, total, latencies }
}
