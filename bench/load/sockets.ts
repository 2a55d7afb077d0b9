/**
 * A load of our own, for what the generators cannot do: requests made one by one, a fixed rate, latencies by status. It
 * costs more CPU than wrk, so it saturates nothing that is measured by throughput.
 */
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'

export interface SocketLoad {
  /** Of the server, without a path. */
  readonly url: string
  readonly connections: number
  readonly seconds: number
  /** Ends the load earlier, after so many requests. */
  readonly requests?: number
  /** Requests a second, however late the answers are; without it each connection asks again when it is answered. */
  readonly rate?: number
  /** The next request, as it goes over the wire; answers have a Content-Length, or come in chunks. */
  readonly next: () => string
}

export interface Answers {
  readonly seconds: number
  readonly total: number
  /** Milliseconds from when each request was due, by status. */
  readonly latencies: ReadonlyMap<number, readonly number[]>
}

const HEAD_END = '\r\n\r\n'
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** Sends one request after another and tells of each answer. */
class Connection {
  readonly #socket: Socket
  #received = ''
  #answered: (status: number) => void = () => undefined

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true })
    this.#socket.setEncoding('latin1').on('data', (chunk: string) => this.#receive(chunk))
    this.#socket.on('error', error => {
      throw error
    })
  }

  send(request: string, answered: (status: number) => void): void {
    this.#answered = answered
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
    this.#answered(status)
  }
}

/** Milliseconds between two looks at how many requests are due. */
const PACE = 1

/** Runs a load to its end. Where requests are due faster than they are answered, they wait, and their wait counts. */
export const runSockets = async (load: SocketLoad): Promise<Answers> => {
  const { url, connections, seconds, requests = Number.POSITIVE_INFINITY, rate, next } = load
  const latencies = new Map<number, number[]>()
  const open = Array.from({ length: connections }, () => new Connection(url))
  const free = [...open]
  const begin = performance.now()
  const end = begin + seconds * 1_000
  let sent = 0
  let answers = 0
  const { promise, resolve } = Promise.withResolvers<void>()

  const ask = (connection: Connection, due: number): void => {
    sent += 1
    connection.send(next(), status => {
      answers += 1
      const now = performance.now()
      const ofStatus = latencies.get(status)
      if (ofStatus === undefined) latencies.set(status, [now - due])
      else ofStatus.push(now - due)
      if (rate === undefined && now < end && sent < requests) ask(connection, now)
      else free.push(connection)
      settle()
    })
  }
  /** Ends the load when nothing is under way and nothing more is due. */
  const settle = (): void => {
    if (free.length === connections && (performance.now() >= end || sent >= requests)) resolve()
  }

  if (rate === undefined) {
    for (const connection of free.splice(0)) ask(connection, begin)
    await promise
  } else {
    const pace = setInterval(() => {
      const now = Math.min(performance.now(), end)
      while (sent < requests && sent < ((now - begin) / 1_000) * rate) {
        const connection = free.pop()
        if (connection === undefined) break
        ask(connection, begin + (sent / rate) * 1_000)
      }
      settle()
    }, PACE)
    await promise.finally(() => clearInterval(pace))
  }
  for (const connection of open) connection.close()
  return { seconds: (performance.now() - begin) / 1_000, total: answers, latencies }
}
