/** Lookups of authentication share connections to PostgreSQL (docs/design.md, "Storage"). */
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import t from 'tap'
import { accountStatus, asAdmin, build, signIn, signUp } from '../support/build.ts'
import { newDatabase } from '../support/postgres.ts'
import { createProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

/** Milliseconds: a generous bound for polling. */
const BOUND = 30_000

const USERS = 20

/** Two connections, of which lookups may use one. */
const DATABASE_CONNECTIONS = '2'

/** Tokens that no other instance has cached. */
const tokensOf = (app: FastifyInstance): Promise<string[]> =>
  Promise.all(Array.from({ length: USERS }, async () => (await signUp(app)).token))

const count = (text: string, part: string): number => text.split(part).length - 1

t.test(
  'lookups are sent before earlier ones have a response; a lost connection fails them, the next works',
  async t => {
    const url = await newDatabase(t)
    let sent = ''
    const proxy = await createProxy(t, url, chunk => {
      sent += chunk.toString('latin1')
    })
    const tokens = await tokensOf(await build(t, { env: { DATABASE_URL: url } }))
    const app = await build(t, { env: { DATABASE_URL: proxy.url, DATABASE_CONNECTIONS } })
    const statuses = () => Promise.all(tokens.map(token => accountStatus(app, token)))
    // The connection exists, and the statement is prepared.
    t.equal(await accountStatus(app, tokens[0] ?? ''), 200)

    proxy.set('no responses')
    sent = ''
    const lost = statuses()
    /** A prepared statement is named in the message that binds its parameters. */
    const lookups = () => count(sent, '\0session\0')
    t.ok((await until(lookups, found => found >= USERS - 1, BOUND)) >= USERS - 1, 'all of them are sent')
    proxy.cut()
    t.strictSame(
      [...new Set(await lost)].filter(status => status !== 503 && status !== 200),
      [],
    )
    proxy.set('none')
    const recovered = await until(statuses, found => found.every(status => status === 200), BOUND)
    t.strictSame([...new Set(recovered)], [200])
  },
)

t.test('lookups that wait leave a connection to everything else, and an error of one is its own', async t => {
  const url = await newDatabase(t)
  const writer = await build(t, { env: { DATABASE_URL: url } })
  const tokens = await tokensOf(writer)
  const user = await signUp(writer)
  const app = await build(t, { env: { DATABASE_URL: url, DATABASE_CONNECTIONS } })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  await client.query('BEGIN; LOCK TABLE sessions')
  const waiting = Promise.all(tokens.map(token => accountStatus(app, token)))
  const isBlocked = async () =>
    (await client.query(`SELECT 1 FROM pg_locks WHERE relation = 'sessions'::regclass AND NOT granted`)).rows
      .length > 0
  t.ok(await until(isBlocked, Boolean, BOUND))
  t.equal((await app.inject({ url: `/admin/users/${user.id}`, headers: asAdmin })).statusCode, 200)
  t.equal((await app.inject({ url: '/admin/users?count=true', headers: asAdmin })).json().total, USERS + 1)
  await client.query('COMMIT')
  t.strictSame([...new Set(await waiting)], [200])
  t.equal((await signIn(app, user.email)).statusCode, 200)
})
