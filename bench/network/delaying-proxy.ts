/**
 * Runs a TCP proxy that delays what clients send by so many milliseconds, as a network between two machines does. Timers of Node are
 * late by up to a millisecond, so the scenario measures the round trip. Arguments: port of the server, milliseconds. Sends its port to
 * the parent.
 */
import { type AddressInfo, connect, createServer } from 'node:net'

const [port = 0, delay = 0] = process.argv.slice(2).map(Number)

interface Delayed {
  readonly dueAt: number
  forward(): void
}

/** In the order in which they are due: the delay is constant. */
const waiting: Delayed[] = []
let isTimed = false

const forwardDue = (): void => {
  isTimed = false
  const now = performance.now()
  while (waiting[0] !== undefined && waiting[0].dueAt <= now) waiting.shift()?.forward()
  wake()
}

const wake = (): void => {
  const [first] = waiting
  if (first === undefined || isTimed) return
  isTimed = true
  setTimeout(forwardDue, Math.max(1, first.dueAt - performance.now()))
}

const server = createServer({ noDelay: true }, client => {
  const upstream = connect({ port, host: '127.0.0.1', noDelay: true })
  client.on('data', chunk => {
    waiting.push({ dueAt: performance.now() + delay, forward: () => upstream.write(chunk) })
    wake()
  })
  upstream.on('data', chunk => client.write(chunk))
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on('error', () => undefined)
    one.once('close', () => other.destroy())
  }
}).listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

process.once('disconnect', () => process.exit())
