/** A network between two programs that a test can break. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from './build.ts'

export type Fault =
  | 'none'
  /** Whoever connects is cut off. */
  | 'refuse'
  /** Everything stays open, and nothing arrives. */
  | 'silent'
  /** What is asked arrives, what is answered does not. */
  | 'no answers'
  /** Everything arrives, in order, and {@link SLOWNESS} later. */
  | 'slow'

/** Milliseconds. */
const SLOWNESS = 800

/** Stands between clients and the server that `url` names. */
export const createProxy = async (t: Context, url: string) => {
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
        if (fault === 'silent' || (fault === 'no answers' && isResponse)) return
        const arrival = Date.now() + (fault === 'slow' ? SLOWNESS : 0)
        // Behind what is still on its way.
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
    /** Breaks every connection that there is. */
    cut,
    /** What becomes of bytes from now on. */
    set(next: Fault): void {
      fault = next
    },
  }
}
