/** How many round trips to PostgreSQL a request takes: over a network each costs its latency (docs/design.md, "Storage"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { FEATURES } from '#features/own'
import { recoveryCodeDigest } from '#features/totp/recovery-codes'
import { tablesOf } from '#storage/stored-feature'
import { addTotp, ENCRYPTION_KEY, signInWith } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  confirmedUser,
  freshEmail,
  PASSWORD,
  signIn,
  signUp,
} from '../support/build.ts'
import { exportAll, importAll } from '../support/bulk-users.ts'
import { newDatabase } from '../support/postgres.ts'
import { createProxy } from '../support/tcp-proxy.ts'

const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const DIGEST = recoveryCodeDigest('abcd-efgh-jkmn-pqrs')

/** Messages to which the server sends a response: a simple query, and the end of an extended one. */
const QUERY = 0x51
const SYNC = 0x53

/**
 * Of the invalidation feed, which connects again when a busy machine delays a heartbeat, the flush and the look for webhooks: no request
 * waits for them. A revocation waits for confirmations, but each read of them serves all revocations. Only a busy machine lets a lease lapse,
 * after which a read is followed by a proof.
 */
const BACKGROUND =
  /heartbeat|pg_backend_pid|LISTEN |pg_control_system|last-requests-of-|webhook-states|(?:INSERT INTO|UPDATE|DELETE FROM) process_leases|lease-confirmations|proof-of-primary/

/** Milliseconds: the longest time of a timer. A pass of the clean-up, or a look at a lease, would be counted with a request. */
const NEVER = 2 ** 31 - 1
const PACES = {
  cleanUpPace: { startWithin: NEVER, interval: NEVER, pause: 50 },
  jobPace: { startWithin: NEVER, maxWait: NEVER },
}

/** Tables whose rows a new password deletes, each with a statement: those of a fork's features come on top. */
const ADDED_MAILED = tablesOf(FEATURES).filter(({ isMailed }) => isMailed).length

/** The messages of a chunk. Those of one statement are sent at once, so no chunk ends within a message. */
const messagesOf = (chunk: Buffer): { type: number; text: string }[] => {
  const messages: { type: number; text: string }[] = []
  for (let start = 0; start + 5 <= chunk.length; start += 1 + chunk.readUInt32BE(start + 1))
    messages.push({
      type: chunk[start] ?? 0,
      text: chunk.toString('latin1', start + 5, start + 1 + chunk.readUInt32BE(start + 1)),
    })
  return messages
}

t.test('the round trips of a request', async t => {
  let trips = 0
  const proxy = await createProxy(t, await newDatabase(t), chunk => {
    // The start of a connection has no type.
    if (chunk[0] === 0 || BACKGROUND.test(chunk.toString('latin1'))) return
    trips += messagesOf(chunk).filter(({ type }) => type === QUERY || type === SYNC).length
  })
  const env = { DATABASE_URL: proxy.url, DATABASE_CONNECTIONS: '1', ENCRYPTION_KEY }
  const app = await build(t, { env, ...PACES })
  const other = await build(t, { env, ...PACES })
  const { token, email, id } = await confirmedUser(app)
  await accountStatus(other, token)

  const tripsOf = async (request: () => Promise<unknown>): Promise<number> => {
    const before = trips
    await request()
    return trips - before
  }
  const put = (app: FastifyInstance) =>
    app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload: { firstName: 'Ada' } })

  const fresh = [await signUp(app), await signUp(app), await signUp(app)]
  t.equal(
    await tripsOf(() => accountStatus(other, fresh.pop()?.token ?? '')),
    1,
    'a token that is not cached',
  )
  t.equal(await tripsOf(() => app.inject('/ready')), 1, '/ready')
  t.equal(
    await tripsOf(() =>
      app.inject({
        method: 'POST',
        url: '/account/sign-up',
        payload: { email: freshEmail(), password: PASSWORD },
      }),
    ),
    2,
    'a sign-up',
  )
  t.equal(await tripsOf(() => signIn(app, email)), 2, 'a sign-in')
  t.equal(await tripsOf(() => signIn(app, email, 'wrong')), 1, 'a sign-in with a wrong password')
  const factors = await signUp(app)
  const { recoveryCodes } = await addTotp(app, factors.token)
  const codes = [...recoveryCodes]
  t.equal(
    await tripsOf(() => signIn(app, factors.email, 'wrong')),
    1,
    'the same with an authenticator app, which nothing is read of',
  )
  t.equal(await tripsOf(() => signIn(app, factors.email)), 1, 'a sign-in without the code')
  t.equal(
    await tripsOf(() => signInWith(app, factors.email, codes.pop())),
    8,
    'a sign-in with a recovery code: a transaction uses it up',
  )
  t.equal(await tripsOf(() => app.inject({ url: `/admin/users/${id}`, headers: asAdmin })), 1, 'a user')
  t.equal(await tripsOf(() => app.inject({ url: '/admin/users', headers: asAdmin })), 1, 'a list')
  const line = () => ({ email: freshEmail() })
  const withApp = () => ({ ...line(), credentials: { totpSecret: SECRET, recoveryCodes: [DIGEST] } })
  t.equal(await tripsOf(() => importAll(app, [line(), line()])), 1, 'an import')
  t.equal(await tripsOf(() => importAll(app, [line(), withApp()])), 1, 'an import with second factors')
  const pages = await tripsOf(() => exportAll(app))
  t.equal(
    await tripsOf(() => exportAll(app, '?passwordHashes=true')),
    pages + 3,
    'and their export, with identities',
  )
  await accountStatus(app, token)
  t.equal(await tripsOf(() => put(app)), 4, 'a change of a user')
  const payload = { currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` }
  const newPassword = () =>
    app.inject({ method: 'PUT', url: '/account/password', headers: bearer(token), payload })
  await accountStatus(app, token)
  t.equal(await tripsOf(newPassword), 10 + ADDED_MAILED, 'a change of the password')
})
