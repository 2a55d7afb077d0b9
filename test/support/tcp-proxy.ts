/** A proxy between two programs whose network a test can break. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from './build.ts'

export type Fault =
  | 'none'
  /** New connections are closed. */
  | 'refuse'
  /** Connections stay open, and nothing arrives. */
  | 'silent'
  /** Requests arrive, responses do not. */
  | 'no responses'
  /** Everything arrives in order, {@link SLOWNESS} later. */
  | 'slow'

/** Milliseconds. */
const SLOWNESS = 800

/**
 * Listens between clients and the server of `url`.
 * @param onRequest called with what clients send. If it returns false, the server does not receive it.
 */
export const createProxy = async (t: Context, url: string, onRequest?: (chunk: Buffer) => unknown) => {
  const { hostname, port } = new URL(url)
  let fault: Fault = 'none'
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    if (fault === 'refuse') return void client.destroy()
    const upstream = connect(Number(port), hostname)
    const pass = (from: Socket, to: Socket, isResponse: boolean): void => {
      sockets.add(from)
      let last: Promise<unknown> = Promise.resolve()
      from.on('data', chunk => {
        if (!isResponse && onRequest?.(chunk) === false) return
        if (fault === 'silent' || (fault === 'no responses' && isResponse)) return
        const arrival = Date.now() + (fault === 'slow' ? SLOWNESS : 0)
        // After the chunks that are in transit.
        last = last
          .then(() => (arrival > Date.now() ? sleep(arrival - Date.now()) : undefined))
          .then(() => to.write(chunk))
      })
      from.on('error', () => undefined)
      from.once('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
    pass(client, upstream, false)
    pass(upstream, client, true)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(() => {
    cut()
    server.close()
  })
  const proxied = new URL(url)
  proxied.port = String((server.address() as AddressInfo).port)
  return {
    url: proxied.href,
    /** Open connections of clients and to the server. */
    get connections() {
      return sockets.size
    },
    /** Closes every connection. */
    cut,
    /** Sets what happens to bytes from now on. */
    set(next: Fault): void {
      fault = next
    },
  }
}
