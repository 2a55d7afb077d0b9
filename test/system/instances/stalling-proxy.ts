/** A proxy between an instance and its database whose connections can be cut or stalled. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Context } from '../../support/build.ts'

export interface TcpProxy {
  /** The port that it listens on. */
  readonly port: number
  /** Closes every connection; new ones are accepted. */
  cut(): void
  /** Stalls: keeps connections open and accepts new ones, but forwards no byte until {@link flow}. Nothing is dropped. */
  hold(): void
  flow(): void
  /** Number of open connections. */
  count(): number
}

interface Pair {
  readonly near: Socket
  /** `null` until it may be opened. */
  far: Socket | null
}

export const startTcpProxy = async (
  context: Context,
  target: { host: string; port: number },
): Promise<TcpProxy> => {
  const pairs = new Set<Pair>()
  let held = false

  const end = (pair: Pair): void => {
    pairs.delete(pair)
    pair.near.destroy()
    pair.far?.destroy()
  }
  /** While stalled, the end of one side is not forwarded to the other either. */
  const follow = (pair: Pair, socket: Socket): void => {
    socket.on('error', () => undefined)
    socket.setNoDelay(true)
    socket.once('close', () => {
      if (!held) end(pair)
    })
  }
  const join = (pair: Pair): void => {
    if (pair.near.destroyed || pair.far?.destroyed) return end(pair)
    if (pair.far === null) {
      pair.far = connect(target)
      follow(pair, pair.far)
    }
    pair.near.pipe(pair.far).pipe(pair.near)
  }
  const part = ({ near, far }: Pair): void => {
    if (far === null) return
    near.unpipe(far).pause()
    far.unpipe(near).pause()
  }

  const server = createServer({ pauseOnConnect: true }, near => {
    const pair: Pair = { near, far: null }
    pairs.add(pair)
    follow(pair, near)
    if (!held) join(pair)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.teardown(() => {
    for (const pair of pairs) end(pair)
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy does not listen')

  return {
    port: address.port,
    cut() {
      for (const pair of pairs) end(pair)
    },
    hold() {
      held = true
      for (const pair of pairs) part(pair)
    },
    flow() {
      held = false
      for (const pair of pairs) join(pair)
    },
    count: () => pairs.size,
  }
}
