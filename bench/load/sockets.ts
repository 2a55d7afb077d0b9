/**
 * A load generator with features that wrk lacks: generated requests, a fixed rate, latencies by status. It needs more CPU than wrk, so
 * it measures maximum throughput only where there is no wrk.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { start, temporaryFolder } from '../processes.ts'
import { inRotation, lengthOf, type Requests, rawRequest, requestAt } from '../requests.ts'
import { quantile } from '../statistics.ts'
import { CONNECTIONS, type LoadGenerator } from './load.ts'

export interface SocketLoad {
  /** The URL of the server, without a path. */
  readonly url: string
  readonly connections: number
  readonly seconds: number
  /** Ends the load early, after so many requests. */
  readonly limit?: number
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

const HEAD_END = '\r\n\r\n'
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** Shared by all connections: bytes are copied from it before the next read. */
const BUFFER = Buffer.allocUnsafe(65_536)

/** A connection that sends one request at a time, and reports the status of each response. Costs about 5 µs for each. */
class Connection {
  readonly #socket: Socket
  #received = ''
  #onResponse: (status: number) => void = () => undefined

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    const callback = (length: number): boolean => {
      this.#receive(BUFFER.toString('latin1', 0, length))
      return true
    }
    const onread = { buffer: BUFFER, callback }
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true, onread })
    this.#socket.on('error', error => {
      throw error
    })
  }

  send(request: string, onResponse: (status: number) => void): void {
    this.#onResponse = onResponse
    this.#socket.write(request)
  }

  close(): void {
    this.#socket.destroy()
  }

  #receive(chunk: string): void {
    this.#received += chunk
    const head = this.#received.indexOf(HEAD_END)
    if (head === -1) return
    const fields = this.#received.slice(0, head)
    const length = /\r\ncontent-length: (\d+)/i.exec(fields)?.[1] ?? 0
    if (this.#received.length < head + HEAD_END.length + Number(length)) return
    if (/\r\ntransfer-encoding: chunked/i.test(fields) && !this.#received.endsWith(LAST_CHUNK)) return
    const status = Number(this.#received.slice(9, 12))
    this.#received = ''
    this.#onResponse(status)
  }
}

/** Milliseconds between checks for due requests. */
const PACE = 1

/** Runs a load to its end. Requests that wait for a free connection are late, and their wait counts as latency. */
export const runSockets = async (load: SocketLoad): Promise<Responses> => {
  const { url, connections, seconds, limit = Number.POSITIVE_INFINITY, rate, next } = load
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
      if (rate === undefined && now < end && sent < limit) send(connection, now)
      else free.push(connection)
      settle()
    })
  }
  /** Ends the load when no response is pending and no request is due. */
  const settle = (): void => {
    if (free.length === connections && (performance.now() >= end || sent >= limit)) resolve()
  }

  if (rate === undefined) {
    for (const connection of free.splice(0)) send(connection, begin)
    await promise
  } else {
    const pace = setInterval(() => {
      const now = Math.min(performance.now(), end)
      while (sent < limit && sent < ((now - begin) / 1_000) * rate) {
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

/**
 * Runs a load whose responses must all have one status.
 * @returns the latencies in milliseconds, and how many responses there were a second.
 * @throws {Error} if one has another status.
 */
export const runExpecting = async (status: number, load: SocketLoad) => {
  const { latencies, total, seconds } = await runSockets(load)
  const statuses = [...latencies.keys()]
  if (statuses.some(each => each !== status)) throw new Error(`responses had status ${statuses}`)
  return { latencies: latencies.get(status) ?? [], rate: total / seconds }
}

/** Maximum seconds of {@link sendAll}. */
const PATIENCE = 600

/**
 * Sends each request once. A load of fixed duration would reach a number of them that depends on the speed of the server.
 * @throws {Error} if a response has an unexpected status.
 */
export const sendAll = async (url: string, requests: Requests): Promise<void> => {
  const limit = lengthOf(requests)
  let sent = 0
  const next = (): string => {
    sent += 1
    return rawRequest(requestAt(requests, sent - 1))
  }
  const connections = Math.min(CONNECTIONS, limit)
  await runExpecting(requests.status, { url, connections, seconds: PATIENCE, limit, next })
}

/** A load for a process of its own, which takes no time from the generator of another one. */
export interface RemoteLoad extends Omit<SocketLoad, 'next'> {
  readonly requests: Requests
}

/** @throws {Error} if the process fails. */
export const runRemote = async (load: RemoteLoad): Promise<Responses> => {
  const file = join(temporaryFolder(), 'load.json')
  writeFileSync(file, JSON.stringify(load))
  const child = start(process.execPath, [import.meta.filename, file], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const failed = once(child, 'exit').then(() => Promise.reject(new Error('the load generator failed')))
  const [{ latencies, ...responses }] = await Promise.race([once(child, 'message'), failed])
  child.disconnect()
  return { ...responses, latencies: new Map(latencies) }
}

if (import.meta.main) {
  const { requests, ...load }: RemoteLoad = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8'))
  const next = inRotation(
    Array.from({ length: lengthOf(requests) }, (_, index) => rawRequest(requestAt(requests, index))),
  )
  const { latencies, ...responses } = await runSockets({ ...load, next })
  process.once('disconnect', () => process.exit())
  process.send?.({ ...responses, latencies: [...latencies] })
}

export const sockets: LoadGenerator = {
  name: 'sockets',
  async run({ url, requests, seconds }) {
    const load = await runRemote({ url, requests, seconds, connections: CONNECTIONS })
    const expected = load.latencies.get(requests.status) ?? []
    const [p50, p99] = [quantile(expected, 0.5), quantile(expected, 0.99)]
    const errors = load.total - expected.length
    return { requests: load.total, seconds: load.seconds, p50, p99, errors }
  },
}
