/** Secrets of authenticator apps at rest, and changes of their key (docs/design.md, "Second factors"). */
import { readFileSync, statSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { Secret } from 'otpauth'
import t, { type Test } from 'tap'
import { call } from '../support/account-routes.ts'
import {
  type AddedApp,
  addTotp,
  beginTotp,
  confirmTotp,
  ENCRYPTION_KEY,
  STEP,
  signInWith,
} from '../support/authenticator-apps.ts'
import { bearer, logCapture, manualClock, type SignedUp, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { storedRows } from '../support/stored-rows.ts'

const NEW_KEY = 'another-encryption-key-0123456789abcdef0123456789ab'
const UNAVAILABLE = 'Codes of authenticator apps cannot be verified at present: use a recovery code'

const isPostgres = (url: string): boolean => url.startsWith('postgres')

/** The ids of the keys of all stored secrets. */
const keysOf = async (url: string): Promise<string[]> => [
  ...new Set(
    [...(await storedRows(url)).matchAll(/v1\.([0-9a-f]{16})\.[\w-]{40}/g)].map(([, id = '']) => id),
  ),
]

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()

  /** Runs an instance with these settings, and stops it. */
  const withKeys = async <Result>(
    t: Test,
    env: Record<string, string>,
    work: (app: FastifyInstance, log: ReturnType<typeof logCapture>) => Promise<Result>,
  ): Promise<Result> => {
    const log = logCapture()
    const app = await build(t, { clock: clock.now, env, logStream: log.stream })
    const result = await work(app, log)
    await app.close()
    return result
  }

  const addUser = async (app: FastifyInstance): Promise<SignedUp & AddedApp> => {
    const user = await signUp(app)
    const added = await addTotp(app, user.token)
    clock.advance(STEP)
    return { ...user, ...added }
  }

  t.test('a previous key decrypts, and the next code encrypts with the new one', async t => {
    const DATABASE_URL = await newDatabase(t)
    const [user, lazy] = await withKeys(t, { DATABASE_URL, ENCRYPTION_KEY }, async app => [
      await addUser(app),
      await addUser(app),
    ])
    const [former = ''] = await keysOf(DATABASE_URL)
    const codeOf = ({ code }: AddedApp): string => {
      clock.advance(STEP)
      return code()
    }
    const both = { DATABASE_URL, ENCRYPTION_KEY: NEW_KEY, ENCRYPTION_KEY_PREVIOUS: ENCRYPTION_KEY }
    await withKeys(t, both, async app => {
      errorsAt(t, await signInWith(app, user.email, user.code(4)), 401, ['code'])
      t.strictSame(await keysOf(DATABASE_URL), [former], 'a wrong code changes nothing')
      t.equal((await signInWith(app, user.email, codeOf(user))).statusCode, 200)
      t.equal((await keysOf(DATABASE_URL)).length, 2)
    })
    const [without, refused, log] = await withKeys(
      t,
      { DATABASE_URL, ENCRYPTION_KEY: NEW_KEY },
      async (app, log) =>
        [
          (await signInWith(app, user.email, codeOf(user))).statusCode,
          [
            await signInWith(app, lazy.email, codeOf(lazy)),
            await signInWith(app, lazy.email, lazy.recoveryCodes[0]),
          ],
          log.records(),
        ] as const,
    )
    t.equal(without, 200, 'the previous key is not needed any more')
    const [unavailable, recovered] = refused
    if (unavailable !== undefined) t.equal(globalErrorOf(t, unavailable, 503), UNAVAILABLE)
    t.equal(unavailable?.headers['retry-after'], undefined)
    t.equal(recovered?.statusCode, 200, 'recovery codes work')
    const lines = log.filter(({ msg }) => msg === 'the secret of an authenticator app cannot be decrypted')
    t.match(lines, [{ level: 50, user: lazy.id, err: { message: new RegExp(`The key ${former} is not`) } }])
    t.equal(lines.length, 1)
    t.notMatch(JSON.stringify(log), new RegExp([user.secret, lazy.secret, NEW_KEY].join('|')))
  })

  t.test('without the key of its secret an app cannot be confirmed: it is added again', async t => {
    const DATABASE_URL = await newDatabase(t)
    const { token, code } = await withKeys(t, { DATABASE_URL, ENCRYPTION_KEY }, async app => {
      const user = await signUp(app)
      return { ...user, ...(await beginTotp(app, user.token)) }
    })
    await withKeys(t, { DATABASE_URL, ENCRYPTION_KEY: NEW_KEY }, async app => {
      globalErrorOf(t, await confirmTotp(app, token, code()), 409)
      await addTotp(app, token)
    })
  })

  t.test('what is stored contains no secret and no recovery code', async t => {
    const DATABASE_URL = await newDatabase(t)
    await withKeys(t, { DATABASE_URL, ENCRYPTION_KEY }, async (app, log) => {
      const added = await addUser(app)
      const begun = await beginTotp(app, (await signUp(app)).token)
      await signInWith(app, added.email, added.code())
      await signInWith(app, added.email, added.recoveryCodes[0])
      const file = isPostgres(DATABASE_URL) ? null : DATABASE_URL.replace('sqlite:', '')
      // The log of the database too, while the service runs.
      const bytes =
        file === null ? '' : ['', '-wal'].map(suffix => readFileSync(file + suffix, 'latin1')).join('')
      const stored = (await storedRows(DATABASE_URL)) + bytes + log.text()
      t.match(stored, /v1\.[0-9a-f]{16}\./)
      for (const secret of [added.secret, begun.secret]) {
        const bytesOfSecret = Buffer.from(Secret.fromBase32(secret).bytes).toString('latin1')
        for (const form of [secret, bytesOfSecret]) t.notOk(stored.includes(form))
      }
      for (const code of added.recoveryCodes)
        for (const form of [code, code.replaceAll('-', '')]) t.notOk(stored.includes(form))
      t.notOk(stored.includes(ENCRYPTION_KEY))
    })
  })

  t.test('without a setting, SQLite keeps a key of its own, and PostgreSQL adds no apps', async t => {
    const DATABASE_URL = await newDatabase(t)
    if (isPostgres(DATABASE_URL)) {
      const user = await withKeys(t, { DATABASE_URL, ENCRYPTION_KEY }, addUser)
      await withKeys(t, { DATABASE_URL }, async app => {
        const { token } = await signUp(app)
        const refused = await call(app, 'POST', '/account/totp', {}, bearer(token))
        t.equal(
          globalErrorOf(t, refused, 403),
          'This service has no ENCRYPTION_KEY, so authenticator apps cannot be added',
        )
        t.equal(globalErrorOf(t, await signInWith(app, user.email, user.code()), 503), UNAVAILABLE)
        t.equal((await signInWith(app, user.email, user.recoveryCodes[0])).statusCode, 200)
      })
      return
    }
    const file = `${DATABASE_URL.replace('sqlite:', '')}.encryption-key`
    const user = await withKeys(t, { DATABASE_URL }, addUser)
    t.equal(statSync(file).mode & 0o777, 0o600)
    const key = readFileSync(file, 'utf8')
    await withKeys(t, { DATABASE_URL }, async app =>
      t.equal((await signInWith(app, user.email, user.code())).statusCode, 200),
    )
    t.equal(readFileSync(file, 'utf8'), key)
    clock.advance(STEP)
    const rotated = { DATABASE_URL, ENCRYPTION_KEY: NEW_KEY, ENCRYPTION_KEY_PREVIOUS_FILE: file }
    await withKeys(t, rotated, async app =>
      t.equal((await signInWith(app, user.email, user.code())).statusCode, 200),
    )
  })
})
