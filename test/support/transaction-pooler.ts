/** A pooler that gives one connection to the server to all of its clients, a transaction at a time, as PgBouncer does in transaction mode. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import pg from 'pg'
import type { Context } from './build.ts'

const READY = 0x5a
const IDLE = 0x49
const TERMINATE = 0x58

/** AuthenticationOk, a key that is not the server's, ReadyForQuery. */
export const GREETING = Buffer.from('5200000008000000004b0000000c00000001000000015a0000000549', 'hex')

/** Calls `onMessage` with each message of the protocol, as it arrives in chunks. */
const splitMessages = (onMessage: (message: Buffer) => void) => {
  let rest = Buffer.alloc(0)
  return (chunk: Buffer): void => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
      const end = 1 + rest.readUInt32BE(1)
      onMessage(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
  }
}

/** @returns the URL of the pooler before the server of `url`. */
export const startTransactionPooler = async (t: Context, url: string): Promise<string> => {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
  stream.removeAllListeners('data')
  const sockets = new Set<Socket>()
  const waiting: { readonly socket: Socket; readonly message: Buffer }[] = []
  let holder: Socket | null = null

  const forward = (): void => {
    holder ??= waiting[0]?.socket ?? null
    for (let next = waiting.findIndex(({ socket }) => socket === holder); next >= 0; ) {
      stream.write(waiting.splice(next, 1)[0]?.message ?? '')
      next = waiting.findIndex(({ socket }) => socket === holder)
    }
  }
  stream.on(
    'data',
    splitMessages(message => {
      holder?.write(message)
      if (message[0] !== READY || message[5] !== IDLE) return
      holder = null
      forward()
    }),
  )
  const server = createServer(socket => {
    sockets.add(socket)
    // The first message has no type.
    socket.once('data', () => {
      socket.write(GREETING)
      socket.on(
        'data',
        splitMessages(message => {
          if (message[0] === TERMINATE) return
          waiting.push({ socket, message })
          forward()
        }),
      )
    })
    socket.on('error', () => undefined)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    stream.destroy()
    server.close()
  })
  const pooled = new URL(url)
  pooled.port = String((server.address() as AddressInfo).port)
  return pooled.href
}
