/**
 * Second factors in imports and exports (docs/design.md, "Account life cycle"): authenticator apps and recovery codes move to a service
 * with another key.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { EVERY_SCOPE } from '#core/accounts/protected-role'
import { OPERATOR } from '#core/audit-log/event'
import type { BulkUserStore } from '#core/store/store'
import { recoveryCodeDigest } from '#features/totp/recovery-codes'
import { toLines } from '#http/validation/ndjson'
import { forgot, reset } from '../support/account-routes.ts'
import { addTotp, codeAt, signInWith } from '../support/authenticator-apps.ts'
import {
  asAdmin,
  build,
  freshEmail,
  JWT_SECRET,
  manualClock,
  PASSWORD,
  signUp,
  temporaryFolder,
} from '../support/build.ts'
import {
  EXPORT,
  type Exported,
  exportAll,
  importAll,
  longestFields,
  type Result,
} from '../support/bulk-users.ts'
import { runCommand } from '../support/cli.ts'
import { type Engine, onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'

const HASHES = '?passwordHashes=true'
const keyOf = (name: string) => ({ ENCRYPTION_KEY: `test-encryption-key-of-${name}-0123456789abcdef` })

/** The test of RFC 6238 (appendix B): 20 bytes. */
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const DIGEST = recoveryCodeDigest('abcd-efgh-jkmn-pqrs')

interface Person {
  readonly id: string
  readonly email: string
  readonly secret: string
  readonly recoveryCodes: readonly string[]
}

/** Signs up a user and adds an authenticator app. */
const withTotp = async (app: FastifyInstance): Promise<Person> => {
  const { id, email, token } = await signUp(app)
  const { secret, recoveryCodes } = await addTotp(app, token)
  return { id, email, secret, recoveryCodes }
}

const signInStatus = async (app: FastifyInstance, email: string, code?: string) => {
  const response = await signInWith(app, email, code)
  return response.statusCode === 401 ? response.json().errors : response.statusCode
}

const REQUIRED = { code: ['is required'] }
const WRONG = { code: ['is wrong'] }

/** The errors of a line. */
const errorsOf = async (app: FastifyInstance, line: object): Promise<Result['errors']> => {
  const [result] = await importAll(app, [{ email: freshEmail(), ...line }])
  return result?.errors
}

const INVALID: readonly (readonly [object, Record<string, readonly string[]>])[] = [
  [{ credentials: 'totp' }, { credentials: ['must be object'] }],
  [{ credentials: null }, { credentials: ['must be object'] }],
  [{ credentials: { totp: SECRET } }, { 'credentials.totp': ['is not allowed'] }],
  [{ credentials: { totpSecret: 5 } }, { 'credentials.totpSecret': ['must be string'] }],
  ...['otpauth://totp/x', `${SECRET.slice(1)}1`, `${SECRET}A`, `A=${SECRET.slice(2)}`, 'ß'.repeat(16)].map(
    totpSecret =>
      [{ credentials: { totpSecret } }, { 'credentials.totpSecret': ['must be base32 (RFC 4648)'] }] as const,
  ),
  ...['', 'GEZDGNBVGY3TQOI', 'A'.repeat(104)].map(
    totpSecret =>
      [
        { credentials: { totpSecret } },
        { 'credentials.totpSecret': ['must be base32 of 10 to 64 bytes'] },
      ] as const,
  ),
  [{ credentials: { recoveryCodes: [DIGEST] } }, { 'credentials.totpSecret': ['is required'] }],
  ...['abcd-efgh-jkmn-pqrs', `${DIGEST}=`, `${DIGEST.slice(0, -1)}B`].map(
    code =>
      [
        { credentials: { totpSecret: SECRET, recoveryCodes: [DIGEST, code] } },
        { 'credentials.recoveryCodes.1': ['must be a SHA-256 digest in base64url: 43 characters'] },
      ] as const,
  ),
  [
    { credentials: { totpSecret: SECRET, recoveryCodes: [DIGEST, DIGEST] } },
    { 'credentials.recoveryCodes': ['must not have the same entry twice'] },
  ],
  [
    {
      credentials: {
        totpSecret: SECRET,
        recoveryCodes: Array.from({ length: 11 }, (_, index) => recoveryCodeDigest(`${index}`)),
      },
    },
    { 'credentials.recoveryCodes': ['must have at most 10 entries'] },
  ],
  [{ factors: ['sms'] }, { 'factors.0': ['must be one of passkey, totp'] }],
  [
    { factors: ['totp'], passwordHash: '$2b$04$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' },
    { factors: ['must not have totp without its credentials'] },
  ],
]

const listed = ({ factors, credentials }: Partial<Exported>) => ({ factors, credentials })

const move = async (t: Test, { build }: Engine) => {
  const clock = manualClock()
  const [from, to] = [
    await build(t, { env: keyOf('source'), clock: clock.now }),
    await build(t, { env: keyOf('target'), clock: clock.now }),
  ]
  return { from, to, clock, person: await withTotp(from) }
}

await onEnginesOfRun(t, async (t, engine) => {
  t.test('an authenticator app and recovery codes work at a service with another key', async t => {
    const { from, to, clock, person } = await move(t, engine)
    const { email, secret, recoveryCodes } = person
    await signUp(from)
    const [first = '', second = ''] = recoveryCodes
    t.equal(await signInStatus(from, email, first), 200)
    const exported = await exportAll(from, HASHES)
    t.strictSame(exported.map(listed), [
      {
        factors: ['totp'],
        credentials: {
          totpSecret: secret,
          recoveryCodes: recoveryCodes.slice(1).map(recoveryCodeDigest).toSorted(),
        },
      },
      { factors: [], credentials: undefined },
    ])
    t.match((await importAll(to, exported)).at(-1), { created: 2, failed: 0 })
    t.strictSame(await exportAll(to, HASHES), exported)

    t.strictSame(await signInStatus(to, email), REQUIRED)
    t.strictSame(await signInStatus(to, email, first), WRONG, 'used up before the export')
    const code = codeAt(secret, clock.now())
    t.equal(await signInStatus(to, email, code), 200)
    t.strictSame(await signInStatus(to, email, code), WRONG, 'once')
    t.equal(await signInStatus(to, email, second), 200)
    t.strictSame(await signInStatus(to, email, second), WRONG, 'once')

    const before = await exportAll(to, HASHES)
    t.match((await importAll(to, exported)).at(-1), { created: 0, exists: 2, failed: 0 })
    t.strictSame(await exportAll(to, HASHES), before, 'a repeated import restores no used code')
    const events = await to.inject({ url: `/admin/events?userId=${person.id}`, headers: asAdmin })
    t.match(events.json().results.at(-1), { type: 'user.created', details: null })
  })

  t.test('an export without hashes has no credentials, and imports users without factors', async t => {
    const { from, to, person } = await move(t, engine)
    const [line] = await exportAll(from)
    t.strictSame(line?.factors, ['totp'])
    t.notOk('credentials' in (line ?? {}))
    t.match(await importAll(to, [{ ...line }]), [{ status: 'created', id: person.id }])
    t.match(await exportAll(to), [{ id: person.id, factors: [] }])
  })

  t.test('a factor that a line without a hash only lists is left out, and locks nobody out', async t => {
    const app = await engine.build(t, { env: keyOf('target') })
    const line = { email: freshEmail(), factors: ['passkey', 'totp'], emailVerified: true }
    const [created] = await importAll(app, [line])
    t.match(created, { status: 'created' })
    const { body } = await app.inject({ url: `/admin/users/${created?.id}`, headers: asAdmin })
    t.match(JSON.parse(body), { factors: [], methods: [] })
    t.equal((await signInWith(app, line.email)).statusCode, 401, 'nobody is let in')
    await forgot(app, line.email)
    const token = await mailbox(app).token(line.email, 'passwordReset')
    t.equal((await reset(app, token, PASSWORD)).statusCode, 200, 'without a code')
    t.equal(await signInStatus(app, line.email), 200)
  })

  t.test('a factor that is removed during an export is not listed', async t => {
    const { from, to, person } = await move(t, engine)
    const store = from.services.storage.bulkUsers as { exportUsers: BulkUserStore['exportUsers'] }
    const real = store.exportUsers
    store.exportUsers = async after => {
      const page = await real(after)
      await from.services.signIns.removeFactors(person.id, OPERATOR, EVERY_SCOPE)
      return page
    }
    const exported = await exportAll(from, HASHES)
    t.strictSame(exported.map(listed), [{ factors: [], credentials: undefined }])
    t.match(await importAll(to, exported), [{ status: 'created' }])
  })

  t.test('secrets of other services: 10 to 64 bytes, any letter case, with or without padding', async t => {
    const clock = manualClock()
    const app = await engine.build(t, { env: keyOf('target'), clock: clock.now })
    await signUp(app)
    const [{ passwordHash } = { passwordHash: '' }] = await exportAll(app, HASHES)
    const secrets = ['gezdgnbvgy3tqojq', 'GEZDGNBVGY3TQOJQGE======', 'GEZDGNBVGY3TQOJQGF', 'A'.repeat(103)]
    for (const totpSecret of secrets) {
      const email = freshEmail()
      t.match(await importAll(app, [{ email, passwordHash, credentials: { totpSecret } }]), [
        { status: 'created' },
      ])
      const canonical = totpSecret.toUpperCase().replaceAll('=', '')
      t.equal(await signInStatus(app, email, codeAt(canonical, clock.now())), 200, totpSecret)
    }
    const exported = await exportAll(app, HASHES)
    t.match(
      exported[3],
      { credentials: { totpSecret: 'GEZDGNBVGY3TQOJQGE' } },
      'without the bits after the end',
    )
  })

  t.test('invalid credentials fail their line only', async t => {
    const app = await engine.build(t, { env: keyOf('target') })
    for (const [line, errors] of INVALID) t.same(await errorsOf(app, line), errors, JSON.stringify(line))
    const good = { email: freshEmail(), credentials: { totpSecret: SECRET } }
    const bad = { email: freshEmail(), credentials: { totpSecret: SECRET, recoveryCodes: ['x'] } }
    const results = await importAll(app, [bad, good, bad, { email: freshEmail(), credentials: {} }])
    t.strictSame(
      results.map(({ status }) => status),
      ['failed', 'created', 'failed', 'created', 'finished'],
    )
    const exported = await exportAll(app, HASHES)
    t.strictSame(exported.map(listed), [
      { factors: ['totp'], credentials: { totpSecret: SECRET } },
      { factors: [], credentials: undefined },
    ])
  })

  t.test('the longest line fits: metadata, names, roles and credentials at their limits', async t => {
    const app = await engine.build(t, { env: keyOf('target') })
    const [result] = await importAll(app, [{ ...longestFields(), email: freshEmail() }])
    t.match(result, { status: 'created' })
    const [line] = await exportAll(app, HASHES)
    const { id, email, ...rest } = line as Exported
    t.match(await importAll(app, [{ ...rest, email: freshEmail() }]), [{ status: 'created' }], 'as exported')
  })

  t.test('a key that cannot decrypt: 503 instead of an export that would drop factors', async t => {
    const env = { DATABASE_URL: await engine.newDatabase(t), JWT_SECRET }
    const clock = manualClock()
    const app = await build(t, { env: { ...env, ...keyOf('service') }, clock: clock.now })
    const { id, secret } = await withTotp(app)
    const other = await build(t, { env: { ...env, ...keyOf('another-service') } })
    t.match(
      globalErrorOf(t, await other.inject({ url: `${EXPORT}${HASHES}`, headers: asAdmin }), 503),
      'Secrets of authenticator apps cannot be decrypted',
    )
    t.match(await exportAll(other), [{ id, factors: ['totp'] }])
    const previous = { ...keyOf('later'), ENCRYPTION_KEY_PREVIOUS: keyOf('service').ENCRYPTION_KEY }
    const rotated = await build(t, { env: { ...env, ...previous } })
    t.match(await exportAll(rotated, HASHES), [{ credentials: { totpSecret: secret } }])
    const command = await runCommand(['users', 'export', '--password-hashes'], {
      ...env,
      ...keyOf('another'),
    })
    t.match(command, { code: 1, stdout: '' })
    t.match(command.stderr, `the secret of user ${id}: The key`)
    t.notMatch(command.stderr, secret)
  })

  t.test('the commands export and import factors', async t => {
    const clock = manualClock()
    const source = { DATABASE_URL: await engine.newDatabase(t), JWT_SECRET, ...keyOf('source') }
    const target = { DATABASE_URL: await engine.newDatabase(t), JWT_SECRET, ...keyOf('target') }
    const from = await build(t, { env: source, clock: clock.now })
    const to = await build(t, { env: target, clock: clock.now })
    const { email, secret } = await withTotp(from)
    const file = join(temporaryFolder(t), 'users.ndjson')
    const exported = await runCommand(['users', 'export', '--password-hashes', '--file', file], source)
    t.match(exported, { code: 0, stderr: '' })
    t.match(await runCommand(['users', 'import', file], target), { code: 0, stdout: /^1 user created/ })
    const [lines, expected] = [await exportAll(to, HASHES), await exportAll(from, HASHES)]
    t.strictSame(lines.map(listed), expected.map(listed))
    t.strictSame(await signInStatus(to, email), REQUIRED)
    t.equal(await signInStatus(to, email, codeAt(secret, clock.now())), 200)
    writeFileSync(file, toLines([{ email, credentials: { totpSecret: 'x' } }]))
    const failed = await runCommand(['users', 'import', file], target)
    t.match(failed, { code: 1, stderr: /^Line 1: The credentials.totpSecret must be base32/m })
  })
})

t.test('without a key on PostgreSQL, a line with a secret fails and says why', async t => {
  await onEnginesOfRun(t, async (t, engine) => {
    if (engine.name !== 'postgres') return
    const app = await engine.build(t, { hasher: quickHashing })
    const errors = { 'credentials.totpSecret': ['cannot be encrypted: this service needs ENCRYPTION_KEY'] }
    t.strictSame(await errorsOf(app, { credentials: { totpSecret: SECRET } }), errors)
    t.strictSame(await exportAll(app, HASHES), [])
  })
})
