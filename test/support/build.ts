/** The service for tests: built by buildApp like the server's, on a temporary store. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { openSqliteStorage } from '#core/store/sqlite'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import { type AppOptions, buildApp } from '../../src/app.ts'
import { quickHashing } from './fake-hashing.ts'
import { createMigratedFile } from './sqlite.ts'
import { pooledWriter } from './writer-pool.ts'

export const ADMIN_KEY = 'test-admin-key-0123456789abcdef'
export const JWT_SECRET = 'test-jwt-secret-0123456789abcdef0123456789abcdef'
export const PASSWORD = 'a rather long pass phrase 7'

/** Milliseconds. Tests wait for deferred work, such as requested mails: in production a quarter of a second on average. */
const MAX_DEFERRAL = 10

/** The part of tap's test object that helpers need. */
export type Context = Pick<Test, 'teardown'>

/** Tokens. The default reserves 8 MB, which make V8 collect all garbage for every second app. */
const CACHE_SIZE = '1000'

/** A folder that is removed with the test. */
export const temporaryFolder = (t: Context): string => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The `DATABASE_URL` of a database with the schema of the service, removed with the test. */
export const newFile = async (t: Context): Promise<string> => {
  const file = join(temporaryFolder(t), 'test.db')
  await createMigratedFile(file)
  return `sqlite:${file}`
}

export interface BuildOptions extends AppOptions {
  /** Environment variables over the test's defaults. */
  readonly env?: Record<string, string>
  /** Adds routes or hooks before the app boots. */
  readonly extend?: (app: FastifyInstance) => void
  /** Hash in threads like production. A thread costs 50 ms to start, a hash 8 ms of a core. */
  readonly realHashing?: boolean
}

/** A pass would hold the lease that the pass of another app needs. Milliseconds: the longest time of a timer. */
const NO_CLEAN_UP = { startWithin: 2 ** 31 - 1, interval: 2 ** 31 - 1, pause: 50 }

/** An app ready for `inject`, closed with the test. Its passwords are hashed without cost, unless the test asks for real hashes. */
export const build = async (
  t: Context,
  { env = {}, extend, realHashing = false, ...parts }: BuildOptions = {},
): Promise<FastifyInstance> => {
  const features = allFeatures(parts.features)
  const settings = {
    NODE_ENV: 'test',
    LOG_LEVEL: parts.logStream === undefined ? 'silent' : 'info',
    DATABASE_URL: env.DATABASE_URL ?? (await newFile(t)),
    ADMIN_KEY,
    JWT_SECRET,
    CACHE_SIZE,
    DRAIN_DELAY: '0s',
    RATE_LIMIT: 'off',
    ...env,
  }
  const config = loadConfig(settings, features)
  // On PostgreSQL mails would become files below the working directory.
  const mail = { ...config.mail, folder: join(temporaryFolder(t), 'outbox') }
  const hashing = realHashing ? {} : { hasher: quickHashing }
  const storage =
    parts.storage ??
    (config.storage.engine === 'sqlite'
      ? await openSqliteStorage(config.storage.file, features, pooledWriter)
      : null)
  const options = {
    ...hashing,
    maxDeferral: MAX_DEFERRAL,
    cleanUpPace: NO_CLEAN_UP,
    ...parts,
    ...(storage && { storage }),
  }
  const app = await buildApp({ ...config, mail }, options).catch(async error => {
    await storage?.close()
    throw error
  })
  t.teardown(() => app.close())
  extend?.(app)
  await app.ready()
  return app
}

/** A busy machine delays notifications of PostgreSQL. The service warns of it: that is no problem of the request. */
const LATE = /changes on other instances are received late/

/** Whether a busy machine has delayed notifications, so that caches were bypassed. */
export const hasLateFeed = (records: readonly Record<string, unknown>[]): boolean =>
  records.some(({ msg }) => LATE.test(String(msg)))

/** Collects log lines; `records` parses them, `problems` returns the warnings and errors. */
export const logCapture = () => {
  let text = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk
      done()
    },
  })
  const records = (): Record<string, unknown>[] =>
    text
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line))
  return {
    stream,
    text: () => text,
    records,
    problems: () => records().filter(({ level, msg }) => Number(level) >= 40 && !LATE.test(String(msg))),
  }
}

/** A clock that moves only when the test advances it. */
export const manualClock = (start = Date.UTC(2026, 0, 1)) => {
  let now = start
  return {
    now: () => now,
    advance(milliseconds: number): void {
      now += milliseconds
    },
  }
}

let counter = 0

/** An e-mail that no other test uses. */
export const freshEmail = (name = 'user'): string => {
  counter += 1
  return `${name}.${process.pid}.${counter}@example.com`
}

export interface SignedUp {
  readonly id: string
  readonly email: string
  readonly token: string
}

/** Signs up a user through the API. @returns the user with the token of the first session. */
export const signUp = async (
  app: FastifyInstance,
  fields: Record<string, unknown> = {},
): Promise<SignedUp> => {
  const payload = { email: freshEmail(), password: PASSWORD, ...fields }
  const response = await app.inject({ method: 'POST', url: '/account/sign-up', payload })
  if (response.statusCode !== 201)
    throw new Error(`sign-up returned ${response.statusCode}: ${response.body}`)
  const { accessToken, user } = response.json()
  return { id: user.id, email: user.email, token: accessToken }
}

/** A user whose e-mail an administrator has declared to be confirmed. */
export const confirmedUser = async (
  app: FastifyInstance,
  fields: Record<string, unknown> = {},
): Promise<SignedUp> => {
  const user = await signUp(app, fields)
  const { statusCode, body } = await updateUser(app, user.id, { emailVerified: true })
  if (statusCode !== 200) throw new Error(`the update returned ${statusCode}: ${body}`)
  return user
}

export const signIn = (
  app: FastifyInstance,
  email: string,
  password = PASSWORD,
): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'POST', url: '/account/sign-in', payload: { email, password } })

export const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` })

export const cookie = (token: string): { cookie: string } => ({ cookie: `ACCESS_TOKEN=${token}` })

export const asAdmin = { 'x-admin-key': ADMIN_KEY }

/** The status of GET /account with a token: 200 or 401. */
export const accountStatus = async (app: FastifyInstance, token: string): Promise<number> =>
  (await app.inject({ url: '/account', headers: bearer(token) })).statusCode

export const updateUser = (
  app: FastifyInstance,
  id: string,
  payload: Record<string, unknown>,
): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'PUT', url: `/admin/users/${id}`, headers: asAdmin, payload })
