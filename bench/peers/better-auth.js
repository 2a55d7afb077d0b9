/**
 * The peer: better-auth's session read, `GET /api/auth/get-session`, as its documentation sets it up on node:http and
 * better-sqlite3. JavaScript, because the type checker runs where the packages of this folder are not installed.
 *
 * Environment: PORT, DATABASE (the file), USERS (how many), TOKENS (a file to write: values of the
 * `Authorization: Bearer` field, one user a line).
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

const { PORT, DATABASE, USERS, TOKENS } = process.env

const database = new Database(DATABASE)
database.pragma('journal_mode = WAL')

const auth = betterAuth({
  database,
  // A fixed one: else it is worked out anew for every request.
  baseURL: 'http://127.0.0.1',
  secret: randomBytes(32).toString('base64'),
  emailAndPassword: { enabled: true },
  plugins: [bearer()],
  rateLimit: { enabled: false },
  logger: { disabled: true },
  telemetry: { enabled: false },
})
await (await getMigrations(auth.options)).runMigrations()
const { internalAdapter, secret } = await auth.$context

const tokens = []
// Past the sign-up, which hashes a password, and in one transaction: 10,000 take 8 s.
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
  tokens.push(`${token}.${await makeSignature(token, secret)}`)
}
database.exec('COMMIT')
writeFileSync(TOKENS, tokens.join('\n'))

const server = createServer(toNodeHandler(auth)).listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`Server listening at http://127.0.0.1:${server.address().port}\n`)
