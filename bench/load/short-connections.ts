/** A load of connections that end after a few requests, as of clients and proxies without keep-alive. */
import { performance } from 'node:perf_hooks'
import { Connection } from './connection.ts'

export interface ShortConnections {
  /** The URL of the server, without a path. */
  readonly url: string
  /** The bytes of each request, without a `Connection` header. */
  readonly request: string
  readonly requestsPerConnection: number
  /** Connections at the same time. */
  readonly atOnce: number
  readonly seconds: number
}

/** Sends requests one after the other on a new connection, the last one with `Connection: close`. */
const useOnce = ({ url, request, requestsPerConnection }: ShortConnections): Promise<void> =>
  new Promise(resolve => {
    const connection = new Connection(url)
    const last = request.replace('\r\n', '\r\nConnection: close\r\n')
    let responses = 0
    const send = (): void =>
      connection.send(responses + 1 < requestsPerConnection ? request : last, status => {
        if (status !== 200) throw new Error(`a response had status ${status}`)
        responses += 1
        if (responses < requestsPerConnection) return send()
        connection.close()
        resolve()
      })
    send()
  })

/** @returns the number of responses. @throws {Error} if one has another status than 200. */
export const runShortConnections = async (load: ShortConnections): Promise<number> => {
  const end = performance.now() + load.seconds * 1_000
  let total = 0
  const repeat = async (): Promise<void> => {
    while (performance.now() < end) {
      await useOnce(load)
      total += load.requestsPerConnection
    }
  }
  await Promise.all(Array.from({ length: load.atOnce }, repeat))
  return total
}
