/**
 * The peer: better-auth's session read, `GET /api/auth/get-session`, as its documentation sets it up on node:http and
 * better-sqlite3. JavaScript, because the type checker runs where the packages of this folder are not installed.
 *
 * Environment: PORT, DATABASE (the file), USERS (how many), TOKENS and COOKIES (files to write: values of the
 * `Authorization: Bearer` and of the `Cookie` field, one user a line), COOKIE_CACHE (`1`: its cookie cache is on).
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { makeSignature } from 'better-auth/crypto'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { bearer } from 'better-auth/plugins/bearer'
import Database from 'better-sqlite3'

const { PORT, DATABASE, USERS, TOKENS, COOKIES, COOKIE_CACHE } = process.env
const cached = COOKIE_CACHE === '1'

const database = new Database(DATABASE)
database.pragma('journal_mode = WAL')

const auth = betterAuth({
  database,
  // A fixed one: else it is worked out anew for every request.
  baseURL: 'http://127.0.0.1',
  secret: randomBytes(32).toString('base64'),
  emailAndPassword: { enabled: true },
  plugins: [bearer()],
  // Five minutes by default: shorter than the bench, which sends the same cookies to its end.
  session: { cookieCache: { enabled: cached, maxAge: 86_400 } },
  rateLimit: { enabled: false },
  logger: { disabled: true },
  telemetry: { enabled: false },
})
await (await getMigrations(auth.options)).runMigrations()
const { internalAdapter, authCookies, secret } = await auth.$context

/** As a client keeps them: the session's cookie, and the copy of the session that the cookie cache adds. */
const cookiesOf = async signed => {
  const cookie = `${authCookies.sessionToken.name}=${encodeURIComponent(signed)}`
  if (!cached) return cookie
  const { headers } = await auth.api.getSession({ headers: new Headers({ cookie }), asResponse: true })
  return [cookie, ...headers.getSetCookie().map(field => field.split(';', 1)[0])].join('; ')
}

const tokens = []
const cookies = []
// Past the sign-up, which hashes a password, and in one transaction: 10,000 take 8 s, with the cookies of the cache 20 s.
database.exec('BEGIN')
for (let index = 0; index < Number(USERS); index += 1) {
  const name = String(index).padStart(8, '0')
  const user = await internalAdapter.createUser({
    email: `user${name}@example.com`,
    name: `First${name} Last${name}`,
    emailVerified: true,
  })
  const { token } = await internalAdapter.createSession(user.id)
  // Signed, as sign-in hands it out in `set-auth-token`: the bare token costs it one more HMAC a request.
  const signed = `${token}.${await makeSignature(token, secret)}`
  tokens.push(signed)
  if (COOKIES) cookies.push(await cookiesOf(signed))
}
database.exec('COMMIT')
if (TOKENS) writeFileSync(TOKENS, tokens.join('\n'))
if (COOKIES) writeFileSync(COOKIES, cookies.join('\n'))

const server = createServer(toNodeHandler(auth)).listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`Server listening at http://127.0.0.1:${server.address().port}\n`)
