/** A range API of breached passwords, as that of Have I Been Pwned. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Context } from './build.ts'

/** The SHA-1 of a password in the two parts of the API. */
export const sha1Of = (password: string): { prefix: string; suffix: string } => {
  const digest = createHash('sha1').update(password).digest('hex').toUpperCase()
  return { prefix: digest.slice(0, 5), suffix: digest.slice(5) }
}

/** Lines of other hashes, some of them padding. */
const OTHERS = Array.from({ length: 800 }, (_, index) => {
  const { suffix } = sha1Of(`other ${index}`)
  return `${suffix}:${index % 3}`
})

/** @returns a range that has the password, as often as `count` says. */
export const rangeWith = (password: string, count: number): string =>
  [...OTHERS.slice(0, 400), `${sha1Of(password).suffix}:${count}`, ...OTHERS.slice(400)].join('\r\n')

/** @param respond default: only `breached` are known from breaches. */
export const rangeServer = async (
  t: Context,
  breached: readonly string[],
  respond: (response: ServerResponse, prefix: string) => unknown = (response, prefix) => {
    const known = breached.filter(password => sha1Of(password).prefix === prefix)
    response.end(known.map(password => rangeWith(password, 7)).join('\r\n') || OTHERS.join('\r\n'))
  },
) => {
  const requests: { url: string | undefined; headers: IncomingHttpHeaders }[] = []
  let connections = 0
  let closed = 0
  const server = createServer(({ url, headers }, response) => {
    requests.push({ url, headers })
    response.on('error', () => undefined)
    respond(response, url?.split('/').at(-1) ?? '')
  })
  server.on('connection', socket => {
    connections += 1
    socket.once('close', () => {
      closed += 1
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/range`,
    requests,
    get connections() {
      return connections
    },
    get closed() {
      return closed
    },
  }
}
