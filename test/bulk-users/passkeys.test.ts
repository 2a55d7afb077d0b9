/**
 * Passkeys in imports and exports (docs/design.md, "Account life cycle" and "Passkeys"): they sign in at another service with the same RP
 * id.
 */
import { generateKeyPairSync, type JsonWebKey, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { INVALID_TIMESTAMP } from '#http/validation/formats'
import { toLines } from '#http/validation/ndjson'
import { factorsOf } from '../support/admin-routes.ts'
import {
  addTotp,
  codeAt,
  ENCRYPTION_KEY,
  signInWith as signInWithPassword,
} from '../support/authenticator-apps.ts'
import {
  build,
  freshEmail,
  JWT_SECRET,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  temporaryFolder,
} from '../support/build.ts'
import { type Exported, exportAll, importAll, longestFields, type Result } from '../support/bulk-users.ts'
import { runCommand } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import {
  creationOptions,
  ENV,
  listPasskeys,
  postPasskey,
  register,
  removePasskey,
  signInWith,
} from '../support/passkeys.ts'
import { cbor, type SoftwareAuthenticator } from '../support/software-authenticator.ts'

const HASHES = '?passwordHashes=true'
const TAKEN = 'is already a passkey'
const WRONG_KEY = 'must be a COSE key (RFC 9052 §7) for EdDSA, ES256 or RS256'
const NOT_BASE64URL = 'must be base64url (RFC 4648 §5) without padding'

interface PasskeyLine {
  readonly id: string
  readonly publicKey: string
  readonly counter: number
  readonly [name: string]: unknown
}

const passkeysOf = (line: Exported | undefined): PasskeyLine[] =>
  (line?.credentials as { passkeys?: PasskeyLine[] } | undefined)?.passkeys ?? []

const bytes = (text = ''): Buffer => Buffer.from(text, 'base64url')
const jwkOf = (key: ReturnType<typeof generateKeyPairSync>): JsonWebKey =>
  key.publicKey.export({ format: 'jwk' })

type Value = number | string | Uint8Array

/** RFC 9052 §7. */
const cose = (...parameters: (readonly [name: number, value: Value])[]): string =>
  cbor(new Map(parameters)).toString('base64url')

const { x, y, d } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
const ed25519 = jwkOf(generateKeyPairSync('ed25519'))
const rsa = jwkOf(generateKeyPairSync('rsa', { modulusLength: 2_048 }))
const short = jwkOf(generateKeyPairSync('rsa', { modulusLength: 1_024 }))
const p384 = jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }))

const KEYS = {
  ES256: cose([1, 2], [3, -7], [-1, 1], [-2, bytes(x)], [-3, bytes(y)]),
  EdDSA: cose([1, 1], [3, -8], [-1, 6], [-2, bytes(ed25519.x)]),
  RS256: cose([1, 3], [3, -257], [-1, bytes(rsa.n)], [-2, bytes(rsa.e)]),
}

const es256 = (x: Value, y: Value): string => cose([1, 2], [3, -7], [-1, 1], [-2, x], [-3, y])
const rs256 = (n: Value, e: Value): string => cose([1, 3], [3, -257], [-1, n], [-2, e])

const WRONG_KEYS: Record<string, string> = {
  'no CBOR': 'AA',
  'a number': cbor(7).toString('base64url'),
  text: cbor('a public key').toString('base64url'),
  'an empty map': cose(),
  'cut off': bytes(KEYS.ES256).subarray(0, -2).toString('base64url'),
  'something behind': Buffer.concat([bytes(KEYS.ES256), Buffer.of(0)]).toString('base64url'),
  'a number in a longer form': Buffer.concat([
    Buffer.of(0xa5, 1, 0x18, 2),
    bytes(KEYS.ES256).subarray(3),
  ]).toString('base64url'),
  'deep nesting': Buffer.alloc(700, 0x81).toString('base64url'),
  'no point of the curve': es256(bytes(x), Buffer.alloc(32, 7)),
  'a short coordinate': es256(bytes(x).subarray(1), bytes(y)),
  'a long coordinate': es256(Buffer.concat([Buffer.of(0), bytes(x)]), bytes(y)),
  'text as a coordinate': es256('x'.repeat(32), bytes(y)),
  'a number as a coordinate': es256(5, 7),
  'no coordinate': cose([1, 2], [3, -7], [-1, 1], [-2, bytes(x)]),
  'a private key': cose([1, 2], [3, -7], [-1, 1], [-2, bytes(x)], [-3, bytes(y)], [-4, bytes(d)]),
  'another algorithm': cose([1, 2], [3, -35], [-1, 2], [-2, bytes(p384.x)], [-3, bytes(p384.y)]),
  'another curve': cose([1, 2], [3, -7], [-1, 2], [-2, bytes(p384.x)], [-3, bytes(p384.y)]),
  'another type': cose([1, 3], [3, -7], [-1, 1], [-2, bytes(x)], [-3, bytes(y)]),
  'no algorithm': cose([1, 2], [-1, 1], [-2, bytes(x)], [-3, bytes(y)]),
  'another curve of EdDSA': cose([1, 1], [3, -8], [-1, 4], [-2, bytes(ed25519.x)]),
  'a short key of EdDSA': cose([1, 1], [3, -8], [-1, 6], [-2, bytes(ed25519.x).subarray(1)]),
  'a short RSA key': rs256(bytes(short.n), bytes(short.e)),
  'an even modulus': rs256(Buffer.alloc(256, 0x80), bytes(rsa.e)),
  'a modulus that begins with zero': rs256(Buffer.concat([Buffer.of(0), bytes(rsa.n)]), bytes(rsa.e)),
  'a number as a modulus': rs256(7, bytes(rsa.e)),
  'no exponent': rs256(bytes(rsa.n), Buffer.alloc(0)),
  'the exponent 1': rs256(bytes(rsa.n), Buffer.of(1)),
  'an exponent that begins with zero': rs256(bytes(rsa.n), Buffer.of(0, 1, 0, 1)),
  'a long exponent': rs256(bytes(rsa.n), Buffer.alloc(9, 0xff)),
}

/** With these, anybody can make signatures. */
const WEAK_KEYS: Record<string, string> = {
  'the exponent 1 in two bytes': rs256(bytes(rsa.n), Buffer.of(0, 1)),
  'the exponent 1 in nine bytes': rs256(bytes(rsa.n), Buffer.from('000000000000000001', 'hex')),
}

const newPasskey = (fields: object = {}) => ({
  id: randomBytes(16).toString('base64url'),
  publicKey: KEYS.ES256,
  counter: 0,
  ...fields,
})

const lineOf = (passkeys: readonly object[], fields: object = {}) => ({
  id: uuidv7(),
  email: freshEmail(),
  credentials: { passkeys },
  ...fields,
})

/** Outcomes without the lines. */
const outcomes = (results: readonly Result[]) =>
  results.slice(0, -1).map(({ status, errors }) => (errors === undefined ? status : errors))

await onEnginesOfRun(t, async (t, engine) => {
  const clock = manualClock()
  const start = (env: object = {}): Promise<FastifyInstance> =>
    engine.build(t, { hasher: quickHashing, clock: clock.now, env: { ...ENV, ...env } })
  /** Of tests whose users do not concern each other. */
  const app = await start()
  const statusOf = async (app: FastifyInstance, authenticator: SoftwareAuthenticator, changes = {}) =>
    (await signInWith(app, authenticator, changes)).statusCode

  t.test('passkeys sign in at another service with the same origin', async t => {
    const [from, to] = [await start(), await start()]
    const user = await signUp(from)
    const [one, two, none] = [
      await register(from, user.token, { name: 'Work "laptop" 💻' }),
      await register(from, user.token, { algorithm: 'EdDSA', counter: null }),
      await signUp(from),
    ]
    clock.advance(1_000)
    const three = await register(from, user.token, { algorithm: 'RS256' })
    t.equal(await statusOf(from, one.authenticator, { counter: 50 }), 200)

    const exported = await exportAll(from, HASHES)
    t.same(
      exported.map(({ id, factors }) => [id, factors]),
      [
        [user.id, ['passkey']],
        [none.id, []],
      ],
    )
    t.notOk('credentials' in (exported[1] ?? {}))
    t.match(passkeysOf(exported[0]), [
      {
        id: one.authenticator.id.toString('base64url'),
        counter: 50,
        name: 'Work "laptop" 💻',
        transports: ['internal', 'hybrid'],
        backedUp: false,
        lastUsedAt: new Date(clock.now()).toISOString(),
      },
      { id: two.authenticator.id.toString('base64url'), counter: 0, name: null, lastUsedAt: null },
      { id: three.authenticator.id.toString('base64url') },
    ])

    t.same(outcomes(await importAll(to, exported)), ['created', 'created'])
    t.strictSame(await exportAll(to, HASHES), exported, 'the same export')
    t.same(await factorsOf(to, user.id), ['passkey'])
    t.equal(await statusOf(to, one.authenticator, { counter: 50 }), 401, 'the counter')
    t.equal(await statusOf(to, one.authenticator, { counter: 51 }), 200)
    for (const { authenticator } of [two, three]) t.equal(await statusOf(to, authenticator), 200)
    const { accessToken, user: account } = (await signInWith(to, three.authenticator)).json()
    t.equal(account.id, user.id)

    const [listed, original] = [await listPasskeys(to, accessToken), await listPasskeys(from, user.token)]
    const named = (passkeys: typeof listed) => passkeys.map(({ name }) => name)
    t.same(named(listed), named(original), 'newest first')
    for (const { id } of listed) t.equal((await removePasskey(to, accessToken, id)).statusCode, 204)
    t.same(await factorsOf(to, user.id), [])
    t.equal(await statusOf(to, three.authenticator), 401)
    t.equal((await signIn(to, user.email)).statusCode, 200, 'the password still signs in')
  })

  t.test('a repeated import changes nothing', async t => {
    const [from, to] = [await start(), await start()]
    const user = await signUp(from)
    const { authenticator } = await register(from, user.token)
    const exported = await exportAll(from, HASHES)
    await importAll(to, exported)
    t.equal(await statusOf(to, authenticator, { counter: 90 }), 200)
    const before = await exportAll(to, HASHES)
    t.same(outcomes(await importAll(to, exported)), ['exists'])
    t.same(outcomes(await importAll(to, [...exported, ...exported])), ['exists', 'exists'])
    t.strictSame(await exportAll(to, HASHES), before, 'the counter is not restored')
  })

  t.test('passkeys, authenticator apps and recovery codes go together', async t => {
    const [from, to] = [await start({ ENCRYPTION_KEY }), await start({ ENCRYPTION_KEY })]
    const user = await signUp(from)
    const { authenticator } = await register(from, user.token)
    const { secret, recoveryCodes } = await addTotp(from, user.token)
    const exported = await exportAll(from, HASHES)
    t.same(exported[0]?.factors, ['passkey', 'totp'])
    t.match(exported[0]?.credentials, { totpSecret: secret, passkeys: [{}] })
    t.same(outcomes(await importAll(to, exported)), ['created'])
    t.strictSame(await exportAll(to, HASHES), exported)
    t.equal(await statusOf(to, authenticator), 200)
    t.equal((await signIn(to, user.email)).statusCode, 401)
    const code = codeAt(secret, clock.now())
    t.equal((await signInWithPassword(to, user.email, code)).statusCode, 200)
    t.equal((await signInWithPassword(to, user.email, recoveryCodes[0])).statusCode, 200)
  })

  t.test('without hashes an export has no passkeys', async t => {
    const { authenticator } = await register(app, (await signUp(app)).token, { name: 'a key of mine' })
    const text = JSON.stringify(await exportAll(app))
    t.match(text, '"factors":["passkey"]')
    t.notOk(text.includes(authenticator.id.toString('base64url')) || text.includes('a key of mine'))
  })

  t.test('the passkeys of many users: 20 each, over several reads', async t => {
    const [from, to] = [await start(), await start()]
    const lines = Array.from({ length: 60 }, () => lineOf(Array.from({ length: 20 }, () => newPasskey())))
    const results = await importAll(from, lines)
    t.match(results.at(-1), { created: 60, failed: 0 })
    const exported = await exportAll(from, HASHES)
    const idsOf = (line: { readonly credentials: { readonly passkeys: readonly object[] } }) =>
      line.credentials.passkeys.map(passkey => (passkey as PasskeyLine).id)
    const expected = new Map(lines.map(line => [line.id, idsOf(line)]))
    t.same(
      new Map(exported.map(line => [line.id, passkeysOf(line).map(({ id }) => id)])),
      expected,
      'in their order',
    )
    t.match((await importAll(to, exported)).at(-1), { created: 60, failed: 0 })
    t.strictSame(await exportAll(to, HASHES), exported)
  })

  t.test(
    'other services: only id, publicKey and counter are needed; lists are in the order of creation',
    async t => {
      const app = await start()
      const dated = (createdAt?: string) => newPasskey(createdAt === undefined ? {} : { createdAt })
      const given = [dated('2025-03-01T00:00:00Z'), dated('2025-01-01T00:00:00+01:00'), dated()]
      t.same(outcomes(await importAll(app, [lineOf(given)])), ['created'])
      const [line] = await exportAll(app, HASHES)
      const [march, january, now] = given
      t.strictSame(
        passkeysOf(line),
        [
          { passkey: january, createdAt: '2024-12-31T23:00:00.000Z' },
          { passkey: march, createdAt: '2025-03-01T00:00:00.000Z' },
          { passkey: now, createdAt: new Date(clock.now()).toISOString() },
        ].map(({ passkey, createdAt }) => ({
          id: passkey?.id,
          publicKey: passkey?.publicKey,
          counter: 0,
          name: null,
          transports: [],
          backedUp: false,
          createdAt,
          lastUsedAt: null,
        })),
      )
    },
  )

  t.test('every kind of key that can be registered', async t => {
    const lines = Object.values(KEYS).map(publicKey => lineOf([newPasskey({ publicKey })]))
    t.same(outcomes(await importAll(app, lines)), ['created', 'created', 'created'])
  })

  t.test('what is malformed fails its line only', async t => {
    const one = (fields: object): object => lineOf([newPasskey(), newPasskey(fields)])
    const at = (name: string, ...messages: string[]) => ({ [`credentials.passkeys.1.${name}`]: messages })
    const cases: (readonly [object, object])[] = [
      ...[...Object.values(WRONG_KEYS), ...Object.values(WEAK_KEYS)].map(
        publicKey => [one({ publicKey }), at('publicKey', WRONG_KEY)] as const,
      ),
      [one({ publicKey: undefined }), at('publicKey', 'is required')],
      [one({ id: undefined }), at('id', 'is required')],
      [one({ counter: undefined }), at('counter', 'is required')],
      [one({ id: '' }), at('id', 'must have at least 1 character')],
      ...['AB', 'AAAAA', 'AA==', 'A+/A', 'ä'].map(id => [one({ id }), at('id', NOT_BASE64URL)] as const),
      [one({ publicKey: `${KEYS.ES256}=` }), at('publicKey', NOT_BASE64URL)],
      [one({ id: 'A'.repeat(1_368) }), at('id', 'must have at most 1364 characters')],
      [one({ publicKey: 'A'.repeat(1_028) }), at('publicKey', 'must have at most 1024 characters')],
      [one({ counter: -1 }), at('counter', 'must be at least 0')],
      [one({ counter: 2 ** 32 }), at('counter', `must be at most ${2 ** 32 - 1}`)],
      [one({ counter: 1.5 }), at('counter', 'must be integer')],
      [one({ backedUp: 1 }), at('backedUp', 'must be boolean')],
      [one({ name: '' }), at('name', 'must have at least 1 character')],
      [one({ createdAt: 'today' }), at('createdAt', INVALID_TIMESTAMP)],
      [one({ userHandle: 'x' }), at('userHandle', 'is not allowed')],
      [lineOf([newPasskey()], { id: undefined }), { id: ['is required: passkeys name their user by it'] }],
      [lineOf([newPasskey({ id: 'AAAA' }), newPasskey({ id: 'AAAA' })]), at('id', TAKEN)],
      [
        lineOf(Array.from({ length: 21 }, () => newPasskey())),
        { 'credentials.passkeys': ['must have at most 20 entries'] },
      ],
      [lineOf([], { credentials: { passkeys: {} } }), { 'credentials.passkeys': ['must be array'] }],
    ]
    const good = () => lineOf([newPasskey()])
    const results = outcomes(
      await importAll(
        app,
        cases.flatMap(([line]) => [line, good()]),
      ),
    )
    for (const [index, [line, errors]] of cases.entries()) {
      t.match(results[index * 2], errors, JSON.stringify(line).slice(0, 400))
      t.not(results[index * 2], 'created')
      t.equal(results[index * 2 + 1], 'created', 'its neighbour')
    }
  })

  t.test('a passkey of another user fails the line, and names every passkey that is taken', async t => {
    const user = await signUp(app)
    const { authenticator } = await register(app, user.token)
    const [registered, imported] = [authenticator.id.toString('base64url'), newPasskey()]
    t.same(outcomes(await importAll(app, [lineOf([imported])])), ['created'])
    const before = await exportAll(app, HASHES)
    const lines = [
      lineOf([newPasskey(), newPasskey({ id: registered })]),
      lineOf([imported, newPasskey(), newPasskey({ id: registered })]),
      // Users who exist are reported as such, so that an import can be repeated.
      lineOf([imported], { email: user.email }),
      lineOf([newPasskey({ id: registered })], { id: user.id }),
    ]
    const neighbours = Array.from({ length: 3 }, () => lineOf([newPasskey()]))
    t.same(outcomes(await importAll(app, [...neighbours.slice(0, 1), ...lines, ...neighbours.slice(1)])), [
      'created',
      { 'credentials.passkeys.1.id': [TAKEN] },
      { 'credentials.passkeys.0.id': [TAKEN], 'credentials.passkeys.2.id': [TAKEN] },
      'exists',
      { id: ['is already taken'] },
      'created',
      'created',
    ])
    t.equal((await exportAll(app, HASHES)).length, before.length + 3)
    t.equal(await statusOf(app, authenticator), 200)
  })

  t.test('the same passkey twice in a batch: the first line that can be stored has it', async t => {
    const user = await signUp(app)
    const [one, two] = [newPasskey(), newPasskey()]
    const [first, second] = [lineOf([one]), lineOf([two])]
    const lines = [
      lineOf([one], { email: user.email }),
      first,
      first,
      lineOf([newPasskey(), one]),
      second,
      lineOf([two, one]),
      { email: freshEmail() },
    ]
    t.same(outcomes(await importAll(app, lines)), [
      'exists',
      'created',
      'exists',
      { 'credentials.passkeys.1.id': [TAKEN] },
      'created',
      { 'credentials.passkeys.0.id': [TAKEN], 'credentials.passkeys.1.id': [TAKEN] },
      'created',
    ])
  })

  t.test('8 × concurrent imports of the same passkeys, on two instances: one user has each', async t => {
    const env = { ...ENV, DATABASE_URL: await engine.newDatabase(t) }
    const options = { hasher: quickHashing, clock: clock.now, env }
    const [here, there] = [await build(t, options), await build(t, options)]
    for (let round = 0; round < 8; round += 1) {
      const shared = Array.from({ length: 8 }, () => newPasskey())
      const batch = (reversed: boolean) => {
        const lines = shared.map((passkey, index) => lineOf([passkey, shared[(index + 3) % 8] as object]))
        return reversed ? lines.toReversed() : lines
      }
      const same = batch(false)
      const results = await Promise.all([
        importAll(here, batch(false)),
        importAll(there, batch(true)),
        importAll(here, same),
        importAll(there, same),
      ])
      const ends = results.map(lines => lines.at(-1)?.status)
      t.same(ends, ['finished', 'finished', 'finished', 'finished'])
      const failed = results.flat().flatMap(({ errors }) => Object.values(errors ?? {}).flat())
      t.ok(failed.length > 0 && failed.every(message => message === TAKEN), 'only what is taken fails')
      const ids = (await exportAll(here, HASHES)).flatMap(passkeysOf).map(({ id }) => id)
      t.equal(new Set(ids).size, ids.length)
    }
  })

  t.test('concurrent imports of the same passkeys in opposite orders do not stop each other', async t => {
    const env = { ...ENV, DATABASE_URL: await engine.newDatabase(t) }
    const options = { hasher: quickHashing, clock: clock.now, env }
    const [here, there] = [await build(t, options), await build(t, options)]
    for (let round = 0; round < 2; round += 1) {
      const shared = Array.from({ length: 300 }, () => newPasskey())
      const linesOf = (passkeys: readonly object[]) =>
        Array.from({ length: 15 }, (_, index) => lineOf(passkeys.slice(20 * index, 20 * (index + 1))))
      const [one, other] = await Promise.all([
        importAll(here, linesOf(shared)),
        importAll(there, linesOf(shared.toReversed())),
      ])
      for (const lines of [one, other]) t.match(lines.at(-1), { status: 'finished' })
      const created = [one, other].flat().filter(({ status }) => status === 'created')
      t.equal(created.length, 15, 'each passkey has one user')
    }
  })

  t.test('a registration and an import of one passkey: one of them has it', async t => {
    const source = await start()
    for (let round = 0; round < 10; round += 1) {
      const [user, other] = [await signUp(app), await signUp(source)]
      const { authenticator } = await register(source, other.token)
      const line = (await exportAll(source, HASHES)).find(({ id }) => id === other.id)
      const credential = authenticator.create((await creationOptions(app, user.token)).json())
      const [added, results] = await Promise.all([
        postPasskey(app, user.token, { credential }),
        importAll(app, [{ ...line }]),
      ])
      const pair = [added.statusCode, ...outcomes(results)]
      if (added.statusCode === 201) t.same(pair, [201, { 'credentials.passkeys.0.id': [TAKEN] }])
      else t.same(pair, [409, 'created'])
    }
  })

  t.test('the longest line fits, as an export writes it too', async t => {
    const app = await start({ ENCRYPTION_KEY })
    const n = randomBytes(752)
    n[0] = 0xff
    n[751] = 0xff
    const publicKey = rs256(n, Buffer.of(1, 0, 1))
    t.ok(publicKey.length > 1_015 && publicKey.length <= 1_024)
    const passkeys = Array.from({ length: 20 }, () =>
      newPasskey({
        id: randomBytes(1_023).toString('base64url'),
        publicKey,
        counter: 2 ** 32 - 1,
        name: '😀'.repeat(128),
        transports: Array.from({ length: 16 }, (_, index) => `t${index}`.padEnd(32, 'x')),
        backedUp: false,
        createdAt: '2026-01-01T00:00:00.123456789+00:00',
        lastUsedAt: '2026-01-01T00:00:00.123456789+00:00',
      }),
    )
    const { credentials, ...fields } = longestFields()
    const line = lineOf(passkeys, { ...fields, credentials: { ...credentials, passkeys } })
    t.same(outcomes(await importAll(app, [line])), ['created'])
    const exported = await exportAll(app, HASHES)
    const other = await start({ ENCRYPTION_KEY })
    t.same(outcomes(await importAll(other, exported)), ['created'])
    t.strictSame(await exportAll(other, HASHES), exported)
  })

  t.test('the commands export and import passkeys', async t => {
    const [source, target] = [
      { ...ENV, DATABASE_URL: await engine.newDatabase(t), JWT_SECRET },
      { ...ENV, DATABASE_URL: await engine.newDatabase(t), JWT_SECRET },
    ]
    const from = await build(t, { hasher: quickHashing, clock: clock.now, env: source })
    const to = await build(t, { hasher: quickHashing, clock: clock.now, env: target })
    const { email, token, id } = await signUp(from)
    const { authenticator } = await register(from, token)
    const file = join(temporaryFolder(t), 'users.ndjson')
    const exported = await runCommand(['users', 'export', '--password-hashes', '--file', file], source)
    t.match(exported, { code: 0, stderr: '' })
    t.match(await runCommand(['users', 'import', file], target), { code: 0, stdout: /^1 user created/ })
    const [imported, original] = [await exportAll(to, HASHES), await exportAll(from, HASHES)]
    t.ok(passkeysOf(imported[0]).length === 1)
    t.strictSame(imported.map(passkeysOf), original.map(passkeysOf))
    t.equal((await signInWith(to, authenticator)).json().user.id, id)
    t.equal((await signIn(to, email, PASSWORD)).statusCode, 200)
    const [line] = await exportAll(from, HASHES)
    writeFileSync(file, toLines([{ ...line, id: uuidv7(), email: freshEmail() }]))
    const failed = await runCommand(['users', 'import', file], target)
    t.match(failed, { code: 1, stderr: /^Line 1: The credentials.passkeys.0.id is already a passkey/m })
  })
})
