/** A TCP proxy in a process of its own, which can be frozen: what is in transit then arrives late. Each connection leads to any service. */
import { connect, createServer, type Socket } from 'node:net'

const targets = (process.env.TARGETS ?? '').split(',')

const server = createServer(client => {
  const { hostname, port } = new URL(targets[Math.floor(Math.random() * targets.length)] ?? '')
  const upstream = connect(Number(port), hostname)
  const pass = (from: Socket, to: Socket): void => {
    from.on('error', () => undefined).on('close', () => to.destroy())
    from.pipe(to)
  }
  pass(client, upstream)
  pass(upstream, client)
}).listen(0, '127.0.0.1', () => process.send?.(server.address()))
process.on('disconnect', () => process.exit())
