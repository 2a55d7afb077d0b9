/** Imports and exports over HTTP. */

import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { recoveryCodeDigest } from '#features/totp/recovery-codes'
import { toLines } from '#http/validation/ndjson'
import { asAdmin, type Context } from './build.ts'

export const IMPORT = '/admin/users/import'
export const EXPORT = '/admin/users/export'
export const NDJSON = { 'content-type': 'application/x-ndjson' }

export interface Result {
  readonly line?: number
  readonly status: string
  readonly id?: string
  readonly errors?: Record<string, string[]>
  readonly created?: number
  readonly exists?: number
  readonly failed?: number
}

export const fromLines = <Value = Result>(text: string): Value[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line))

export const post = (app: FastifyInstance, payload: string | Buffer): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'POST', url: IMPORT, headers: { ...asAdmin, ...NDJSON }, payload })

/** Imports raw lines or objects. @returns the results. */
export const importAll = async (
  app: FastifyInstance,
  lines: string | Buffer | readonly object[],
): Promise<Result[]> => {
  const payload = typeof lines === 'string' || Buffer.isBuffer(lines) ? lines : toLines(lines)
  const response = await post(app, payload)
  if (response.statusCode !== 200) throw new Error(`the import returned ${response.statusCode}`)
  return fromLines(response.body)
}

export interface Exported extends Record<string, unknown> {
  readonly id: string
  readonly email: string
}

export const exportAll = async (app: FastifyInstance, query = ''): Promise<Exported[]> =>
  fromLines((await app.inject({ url: `${EXPORT}${query}`, headers: asAdmin })).body)

export interface OpenImport {
  readonly request: ClientRequest
  /** Resolves with the head of the response. */
  readonly response: Promise<IncomingMessage>
  /** Reads until there are so many results, or the response has ended. */
  results(count: number): Promise<Result[]>
  /** Resolves when the connection is closed or the response complete. */
  readonly ended: Promise<unknown>
}

/** An import over a real connection, whose lines the test sends step by step. */
export const openImport = async (
  t: Context,
  app: FastifyInstance,
  credentials: Readonly<Record<string, string>> = asAdmin,
): Promise<OpenImport> => {
  if (app.server.listening === false) await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const sent = request({ port, method: 'POST', path: IMPORT, headers: { ...credentials, ...NDJSON } })
  sent.on('error', () => undefined)
  t.teardown(() => sent.destroy())
  sent.flushHeaders()
  const ended = once(sent, 'close')
  const response = once(sent, 'response').then(([response]) => response as IncomingMessage)
  let text = ''
  const arrived = response.then(response => {
    response.on('data', chunk => {
      text += chunk
    })
    response.on('error', () => undefined)
    return response
  })
  return {
    request: sent,
    response,
    ended,
    async results(count) {
      const response = await arrived
      while (fromLines(text).length < count && !response.closed) {
        await Promise.race([once(response, 'data'), once(response, 'close')])
      }
      return fromLines(text)
    },
  }
}

const longestMetadata = (name: string) => ({ [name]: 'x'.repeat(8_192 - name.length - 7) })

/** The fields of a line with metadata, names, roles, and credentials of an authenticator app at their limits. */
export const longestFields = () => ({
  firstName: '😀'.repeat(128),
  lastName: '😀'.repeat(128),
  roles: Array.from({ length: 32 }, (_, index) => `r${index}`.padEnd(64, 'x')),
  userMetadata: longestMetadata('a'),
  appMetadata: longestMetadata('b'),
  credentials: {
    totpSecret: 'A'.repeat(103),
    recoveryCodes: Array.from({ length: 10 }, (_, index) => recoveryCodeDigest(`${index}`)),
  },
})
