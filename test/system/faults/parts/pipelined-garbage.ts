/** Requests followed by garbage, in segments of random length: every processed request gets its response. */

import { PASSWORD } from '../../../support/build.ts'
import { startServer } from '../../../support/process.ts'
import { lines, RawConnection, withJson } from '../../../support/raw-http.ts'
import { Report } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'

const ROUNDS = 600
const AT_ONCE = 8
const MAX_REQUESTS = 5
const MAX_CUTS = 4

interface User {
  readonly email: string
  readonly token: string
}

interface Piece {
  readonly bytes: string
  /** Status of its response. */
  readonly status: number
  /** Whether its password waits for hashing, which a half-closed client does not get: 499. */
  readonly waits?: boolean
  /** Whether processing it changes the account. */
  readonly changes?: boolean
}

const HOST = 'Host: 127.0.0.1'

const withBody = (line: string, body: unknown, ...fields: string[]): string =>
  withJson([`${line} HTTP/1.1`, HOST, ...fields], body)

const JSON_HEADERS = { 'content-type': 'application/json' }

const signUp = async (url: string, email: string): Promise<User> => {
  const body = JSON.stringify({ email, password: PASSWORD })
  const response = await fetch(`${url}/account/sign-up`, { method: 'POST', headers: JSON_HEADERS, body })
  const { accessToken } = (await response.json()) as { accessToken: string }
  return { email, token: accessToken }
}

/** Incremented with each change. */
const versionOf = async (url: string, { token }: User): Promise<number> => {
  const response = await fetch(`${url}/account`, { headers: { authorization: `Bearer ${token}` } })
  return Number(response.headers.get('etag')?.replaceAll('"', ''))
}

export const run = async ({ context, random }: FaultPart): Promise<Report> => {
  const report = new Report('pipelined garbage')
  const { url, port } = await startServer(context)
  const below = (limit: number): number => random.integer(0, limit - 1)
  const of = <T>(items: readonly T[]): T => items[below(items.length)] as T

  const wholeRequest = (user: User): Piece => {
    const authorization = `Authorization: Bearer ${user.token}`
    const change = { firstName: `Name ${below(1_000_000)}` }
    const chunk = JSON.stringify(change)
    const chunked = [HOST, authorization, 'Content-Type: application/json', 'Transfer-Encoding: chunked']
    const signIn = { email: user.email, password: PASSWORD }
    const put: Piece = { bytes: withBody('PUT /account', change, authorization), status: 200, changes: true }
    return of<Piece>([
      put,
      put,
      put,
      {
        bytes: `${lines('PUT /account HTTP/1.1', ...chunked)}${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`,
        status: 200,
        changes: true,
      },
      { bytes: lines('GET /account HTTP/1.1', HOST, authorization), status: 200 },
      { bytes: lines('GET /health HTTP/1.1', HOST), status: 200 },
      { bytes: lines('GET /nope HTTP/1.1', HOST), status: 404 },
      { bytes: lines('GET /account HTTP/1.1', HOST), status: 401 },
      { bytes: withBody('POST /account/sign-in', signIn), status: 200, waits: true },
    ])
  }

  const garbage = (user: User): Piece => {
    const authorization = `Authorization: Bearer ${user.token}`
    const post = ['POST /account/sign-in HTTP/1.1', HOST, 'Content-Type: application/json']
    const noise = Array.from({ length: 1 + below(200) }, () => String.fromCharCode(below(256)))
    return of<Piece>([
      { bytes: 'no HTTP at all\r\n\r\n', status: 400 },
      { bytes: `\0${noise.join('')}\r\n\r\n`, status: 400 },
      { bytes: lines('GET /health HTTP/1.1', 'Host : a'), status: 400 },
      { bytes: lines('GET /health HTTP/3.0', HOST), status: 505 },
      { bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', status: 505 },
      { bytes: `${lines(...post, 'Transfer-Encoding: chunked')}zz\r\n`, status: 400 },
      { bytes: lines(...post, 'Content-Length: 5, 5'), status: 400 },
      { bytes: `${lines(...post, 'Transfer-Encoding: gzip, chunked')}0\r\n\r\n`, status: 501 },
      { bytes: lines('CONNECT a:80 HTTP/1.1', 'Host: a:80'), status: 400 },
      { bytes: lines('GET /%zz HTTP/1.1', HOST), status: 400 },
      { bytes: lines('GET /health HTTP/1.1', HOST, 'Connection: close'), status: 200 },
      {
        bytes: withBody(
          'PUT /account',
          { firstName: 'X' },
          authorization,
          'Connection: Upgrade',
          'Upgrade: h2c',
        ),
        status: 200,
        changes: true,
      },
    ])
  }

  const failures: string[] = []
  let responses = 0
  const round = async (user: User, index: number): Promise<void> => {
    const whole = Array.from({ length: 1 + below(MAX_REQUESTS) }, () => wholeRequest(user))
    const end = garbage(user)
    const pieces = [...whole, end]
    // Nothing after the garbage is processed.
    const behind = of(['', wholeRequest(user).bytes, withBody('PUT /account', {}), '\r\n\r\n\0'])
    const bytes = Buffer.from(pieces.map(piece => piece.bytes).join('') + behind, 'latin1')
    const cuts = Array.from({ length: below(MAX_CUTS + 1) }, () => below(bytes.length))
    const before = await versionOf(url, user)
    const connection = new RawConnection(port)
    await connection.writeInPieces(bytes, cuts)
    const halfClosed = below(2) === 0
    if (halfClosed) connection.halfClose()
    const title = `round ${index}, ${JSON.stringify(bytes.toString('latin1'))} cut at ${cuts}`
    try {
      const seen = (await connection.untilClosed()).map(({ statusCode }) => statusCode)
      responses += seen.length
      const isWanted = ({ status, waits = false }: Piece, place: number): boolean =>
        seen[place] === status || (waits && halfClosed && seen[place] === 499)
      if (seen.length !== pieces.length || !pieces.every(isWanted)) {
        failures.push(`${seen} instead of ${pieces.map(({ status }) => status)}: ${title}`)
      }
    } catch (error) {
      failures.push(`${error}: ${title}`)
    }
    const changes = (await versionOf(url, user)) - before
    const wanted = pieces.filter(piece => piece.changes).length
    if (changes !== wanted) failures.push(`${changes} changes instead of ${wanted}: ${title}`)
  }

  const users = await Promise.all(
    Array.from({ length: AT_ONCE }, (_, index) => signUp(url, `user.${index}@example.com`)),
  )
  let next = 0
  await Promise.all(
    users.map(async user => {
      while (next < ROUNDS) {
        next += 1
        await round(user, next)
      }
    }),
  )
  report.figure('rounds', next)
  report.figure('responses', responses)
  report.failures('requests without their own response, or processed behind the last one', failures)
  return report
}
