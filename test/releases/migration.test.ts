/** The databases of released versions, as `npm run record-release` stored them, are migrated at start (CHANGELOG 0.2.0). */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { newToken } from '#core/accounts/email-token'
import { accountOf, call, reset } from '../support/account-routes.ts'
import { allEvents, getEvents } from '../support/admin-routes.ts'
import { ENCRYPTION_KEY, signInWith } from '../support/authenticator-apps.ts'
import { asAdmin, bearer, build, type Context, PASSWORD, signIn, temporaryFolder } from '../support/build.ts'
import { codesOf, EMAIL_CODES, signInByCode } from '../support/email-codes.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { createDatabase, query } from '../support/postgres.ts'
import { execute } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'
import { FAY, IMPORTED_PASSWORD, type Recorded, recordedSessions, recordedUsers } from './scenario.ts'

const MINUTE = 60_000

const RESTORE = {
  async sqlite(t: Context, folder: string): Promise<string> {
    const file = join(temporaryFolder(t), 'release.db')
    writeFileSync(file, gunzipSync(readFileSync(join(folder, 'sqlite.db.gz'))))
    return `sqlite:${file}`
  },
  async postgres(t: Context, folder: string): Promise<string> {
    const url = await createDatabase(t)
    await query(url, readFileSync(join(folder, 'postgres.sql'), 'utf8'))
    return url
  },
}

const confirm = (
  app: FastifyInstance,
  token: string,
  proof: object = {},
  headers: Record<string, string> = {},
) => call(app, 'POST', '/account/verify-email', { token, ...proof }, headers)

/** Stores a link as 0.2.0 did, which mailed four kinds of them. @returns its token. */
const addLink = async (url: string, purpose: string, email: string, at: number): Promise<string> => {
  const { token, digest } = newToken(at)
  await execute(
    url,
    `INSERT INTO email_tokens (digest, purpose, user_key, email, created_at, expires_at)
      SELECT '${digest}', '${purpose}', key, email, ${at}, ${at + 60 * MINUTE} FROM users WHERE email = '${email}'`,
  )
  return token
}

const releases = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name)

t.test('every version in the changelog from 0.2.0 on has a recorded database', async t => {
  const changelog = readFileSync(join(import.meta.dirname, '..', '..', 'CHANGELOG.md'), 'utf8')
  const versions = [...changelog.matchAll(/^## \[(\d+\.\d+\.\d+)\]/gm)].map(([, version]) => version)
  t.same(releases.sort(), versions.filter(version => version !== '0.1.0').sort())
})

for (const release of releases)
  for (const engine of ['sqlite', 'postgres'] as const)
    t.test(`a database of ${release} on ${engine} keeps its data and goes on`, async t => {
      const folder = join(import.meta.dirname, release)
      const expected: Record<typeof engine, Recorded> = JSON.parse(
        readFileSync(join(folder, 'expected.json'), 'utf8'),
      )
      const { at, users, events, cursor, sessions, tokens } = expected[engine]
      const DATABASE_URL = await RESTORE[engine](t, folder)
      const env = { DATABASE_URL, ENCRYPTION_KEY }
      const app = await build(t, { env, realHashing: true, clock: () => at + MINUTE })

      t.match(await recordedUsers(app), users, 'users')
      const stored = (await getEvents(app, { limit: 100 })).json().results
      t.same(
        stored.toSorted((a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)),
        events.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
        'the audit log',
      )
      const current = { current: true, lastRequestAt: new Date(at + MINUTE).toISOString() }
      t.match(
        await recordedSessions(app, tokens.active),
        sessions.map(session =>
          (session as { current: boolean }).current ? { ...(session as object), ...current } : session,
        ),
        'sessions',
      )
      t.match(await accountOf(app, tokens.active), {
        email: 'ann@example.com',
        lastName: 'Ångström',
        locale: null,
      })
      t.match(await accountOf(app, tokens.impersonated), { email: 'ann@example.com' })
      for (const token of [tokens.signedOut, tokens.disabled])
        t.same(Object.keys(await accountOf(app, token)), ['errors'], 'a revoked token stays revoked')
      t.equal((await signIn(app, 'ann@example.com')).statusCode, 200)
      t.equal((await signIn(app, 'cat@example.com', IMPORTED_PASSWORD)).statusCode, 200)
      t.equal((await signIn(app, 'ben@example.com')).statusCode, 403)

      errorsAt(t, await confirm(app, tokens.emailChange), 403, ['global'], 'the mailbox is not the account')
      const confirmed = await confirm(app, tokens.emailChange, {}, bearer(tokens.active))
      t.match(confirmed.json(), { email: 'ann.new@example.com', emailVerified: true })
      const payload = { token: tokens.passwordReset, password: `${PASSWORD} again` }
      t.equal(
        (await call(app, 'POST', '/account/reset-password', payload)).statusCode,
        400,
        'the changed e-mail has invalidated the reset',
      )
      const added = await call(app, 'POST', '/account/sign-up', {
        email: 'eve@example.com',
        password: PASSWORD,
      })
      t.equal(added.statusCode, 201)
      // On PostgreSQL an event waits for transactions that began before its own.
      const later = await until(
        async () => (await getEvents(app, { sort: 'at', cursor, limit: 100 })).json().results,
        found => found.length === 4,
        MINUTE,
      )
      t.match(
        later.map(({ type }: { type: string }) => type),
        ['user.signed-in', 'user.signed-in', 'email.changed', 'user.signed-up'],
        'the cursor goes on',
      )
      const { apiKey, recoveryCode } = tokens
      if (apiKey === undefined) return
      t.match(await accountOf(app, apiKey), { email: FAY }, 'an API key')
      t.same((await signInWith(app, FAY)).json().errors.code, ['is required'], 'an authenticator app')
      t.equal((await signInWith(app, FAY, recoveryCode)).statusCode, 200, 'a recovery code')
    })

for (const engine of ['sqlite', 'postgres'] as const)
  t.test(`unconfirmed users and links of 0.2.0 on ${engine} follow the rules of this version`, async t => {
    const folder = join(import.meta.dirname, '0.2.0')
    const { at, users, tokens }: Recorded = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'))[
      engine
    ]
    const DATABASE_URL = await RESTORE[engine](t, folder)
    const ben = 'ben@example.com'
    const disabled = await addLink(DATABASE_URL, 'verification', ben, at)
    const cat = 'cat@example.com'
    const verification = await addLink(DATABASE_URL, 'verification', cat, at)
    const notice = await addLink(DATABASE_URL, 'accountExists', 'ann@example.com', at)
    const env = { ...EMAIL_CODES, DATABASE_URL, REQUIRE_EMAIL_VERIFICATION: 'true' }
    const app = await build(t, { env, realHashing: true, clock: () => at + MINUTE })
    const codes = codesOf(app)

    t.match(await recordedUsers(app), users, 'nobody was removed, confirmed or emptied')
    globalErrorOf(t, await signIn(app, cat, IMPORTED_PASSWORD), 403, 'not confirmed yet')
    errorsAt(t, await confirm(app, disabled, { password: PASSWORD }), 400, ['token'], 'of a disabled user')
    errorsAt(t, await confirm(app, verification), 403, ['global'], 'the mailbox alone')
    errorsAt(
      t,
      await confirm(app, verification, {}, bearer(tokens.active)),
      403,
      ['global'],
      'another session',
    )
    errorsAt(t, await confirm(app, verification, { password: PASSWORD }), 400, ['password'])
    const confirmed = await confirm(app, verification, { password: IMPORTED_PASSWORD })
    t.match([confirmed.statusCode, confirmed.json()], [200, { email: cat, emailVerified: true }])
    t.equal(confirmed.headers['set-cookie'], undefined)
    t.equal((await signIn(app, cat, IMPORTED_PASSWORD)).statusCode, 200)

    for (const token of [tokens.emailChange, notice, tokens.passwordReset])
      t.not((await confirm(app, token)).statusCode, 200)
    errorsAt(
      t,
      await confirm(app, notice, { password: PASSWORD }),
      400,
      ['token'],
      'a notice confirms nothing',
    )
    const { statusCode, body } = await reset(app, notice, `${PASSWORD} again`)
    t.equal(statusCode, 200, `a notice still resets the password: ${body}`)
    t.equal((await signIn(app, 'ann@example.com', `${PASSWORD} again`)).statusCode, 200)
    errorsAt(t, await reset(app, tokens.passwordReset, PASSWORD), 400, ['token'], 'which ends other links')

    const [found] = (await recordedUsers(app)).filter(({ email }: { email: string }) => email === ben)
    await call(app, 'PUT', `/admin/users/${found.id}`, { disabled: false }, asAdmin)
    await call(app, 'POST', '/account/sign-up', { email: ben, password: `${PASSWORD} again` })
    t.ok(await codes.mails.to(ben, 'accountExists'), 'an unconfirmed user of before has the address')
    const entered = await signInByCode(app, ben, await codes.request(ben))
    t.match(entered.json(), { user: { id: found.id, firstName: 'Ben', emailVerified: true } })
    t.equal((await signIn(app, ben)).statusCode, 401, 'the password of before is gone')
    t.ok((await allEvents(app, { userId: found.id, type: 'password.removed' })).length === 1)
  })
