/** A TCP proxy that delays what clients send, as a network between two machines does. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { start } from './processes.ts'

// Arguments: the port of the server, and milliseconds. Sends its own port to the parent.
if (import.meta.main) {
  const [port = 0, delay = 0] = process.argv.slice(2).map(Number)
  const server = createServer({ noDelay: true }, client => {
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true })
    // Timers of one duration fire in their order. They are late by up to a millisecond: the scenario measures the round trip.
    client.on('data', chunk => setTimeout(() => upstream.write(chunk), delay))
    upstream.on('data', chunk => client.write(chunk))
    client.on('error', () => undefined).once('close', () => upstream.destroy())
    upstream.on('error', () => undefined).once('close', () => client.destroy())
  }).listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
  process.once('disconnect', () => process.exit())
}

/** Starts it in a process of its own. @returns the URL with the port of the proxy. */
export const startDelayingProxy = async (databaseUrl: string, delay: number): Promise<string> => {
  const url = new URL(databaseUrl)
  const args = [import.meta.filename, url.port, String(delay)]
  const proxy = start(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const [port] = (await once(proxy, 'message')) as [number]
  proxy.unref()
  proxy.channel?.unref()
  url.port = String(port)
  return url.href
}
