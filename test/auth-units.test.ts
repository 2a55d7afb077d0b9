/** The pieces of `src/auth` by themselves, on real threads, files and processes (DESIGN §5). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashSync } from '@node-rs/argon2'
import t from 'tap'
import { AccessTokens, isInForce } from '../src/auth/access-tokens.ts'
import { AdminKeys } from '../src/auth/admin-keys.ts'
import { isWeak } from '../src/auth/hash-parameters.ts'
import { KeyedMutex } from '../src/auth/keyed-mutex.ts'
import { PasswordHashing } from '../src/auth/password-hashing.ts'
import { newSession } from '../src/auth/session.ts'
import { keptSecret, signingKeys } from '../src/auth/signing-keys.ts'
import { ServiceError } from '../src/errors.ts'
import { ADMIN_KEY, type Context, manualClock, temporaryFolder } from './support/build.ts'

const PROJECT = join(import.meta.dirname, '..')

t.test('work on one key goes one after the other, in order (DESIGN §4)', async t => {
  const mutex = new KeyedMutex()
  const log: string[] = []
  const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>())
  const work = (name: string, gate: Promise<void>) => async () => {
    log.push(`${name} begins`)
    await gate
    log.push(`${name} ends`)
    return name
  }
  const taken = gates.map(({ promise }, index) => mutex.runExclusive('ada', work(`ada ${index}`, promise)))
  const other = mutex.runExclusive('bob', work('bob', Promise.resolve()))
  t.equal(await other, 'bob', 'another key does not wait')
  for (const gate of gates.toReversed()) gate.resolve()
  t.strictSame(await Promise.all(taken), ['ada 0', 'ada 1', 'ada 2'])
  t.strictSame(
    log.filter(line => line.startsWith('ada')),
    ['ada 0 begins', 'ada 0 ends', 'ada 1 begins', 'ada 1 ends', 'ada 2 begins', 'ada 2 ends'],
  )
})

t.test('work that fails does not hold up the next, and fails for its own caller alone', async t => {
  const mutex = new KeyedMutex()
  const failing = mutex.runExclusive('ada', async () => {
    throw new Error('not this time')
  })
  const next = mutex.runExclusive('ada', async () => 'done')
  await t.rejects(failing, { message: 'not this time' })
  t.equal(await next, 'done')
  t.equal(await mutex.runExclusive('ada', async () => 'again'), 'again')
})

t.test('an admin key is accepted when it is exactly one of the configured (§5.2.2, DESIGN §5)', t => {
  const keys = new AdminKeys([ADMIN_KEY, 'previous-admin-key-0123456789'])
  t.ok(keys.accepts(ADMIN_KEY))
  t.ok(keys.accepts('previous-admin-key-0123456789'))
  const wide = [...ADMIN_KEY].map(letter => String.fromCharCode(letter.charCodeAt(0) + 0x100)).join('')
  for (const wrong of [
    '',
    ' ',
    ADMIN_KEY.slice(1),
    ADMIN_KEY.slice(0, -1),
    `${ADMIN_KEY} `,
    `${ADMIN_KEY}\u0000`,
  ]) {
    t.notOk(keys.accepts(wrong), JSON.stringify(wrong))
  }
  t.notOk(keys.accepts(ADMIN_KEY.toUpperCase()), 'other case')
  t.notOk(keys.accepts(wide), 'characters that share the low byte')
  t.notOk(new AdminKeys([]).accepts(''), 'no key at all')
  t.notOk(new AdminKeys([]).accepts(ADMIN_KEY))
  t.end()
})

t.test('a key is named without telling its secret, and tokens rotate by that name (DESIGN §5)', t => {
  const clock = manualClock()
  const [one, two] = ['1'.repeat(40), '2'.repeat(40)]
  const before = new AccessTokens(signingKeys(one, null))
  const during = new AccessTokens(signingKeys(two, one))
  const after = new AccessTokens(signingKeys(two, null))
  const session = newSession('ada', clock.now(), { lifetime: 60_000, idle: 60_000 })
  const token = before.issue(session)
  const expected = {
    userId: 'ada',
    sessionId: session.id,
    issuedAt: Math.floor(session.createdAt / 1_000) * 1_000,
    expiresAt: session.expiresAt,
  }
  t.strictSame(before.verify(token), expected)
  t.strictSame(during.verify(token), expected)
  t.equal(after.verify(token), null)
  t.strictSame(after.verify(during.issue(session)), expected, 'the new key signs')
  t.equal(before.verify(during.issue(session)), null)
  const { current, previous } = signingKeys(two, one)
  t.not(current.id, previous?.id)
  t.equal(signingKeys(one, null).current.id, previous?.id, 'the same secret, the same name')
  t.notOk(two.includes(current.id) || Buffer.from(two).toString('base64url').includes(current.id))
  const moments = [clock.now() - 6_000, clock.now(), session.expiresAt - 1, session.expiresAt]
  t.strictSame(
    moments.map(now => isInForce(expected, now)),
    [false, true, true, false],
    'from when it was issued, within what clocks may differ, to the end of its time',
  )
  t.end()
})

t.test('processes that start at once keep one secret, readable by its owner alone (DESIGN §5)', async t => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'jwt-secret')
  const script = `import { keptSecret } from './src/auth/signing-keys.ts'
    process.stdout.write('ready')
    process.stdin.once('data', () => {
      process.stdout.write(keptSecret(process.argv[1]))
      process.stdin.destroy()
    })`
  const children = Array.from({ length: 3 }, () => {
    const args = ['--input-type=module-typescript', '-e', script, file]
    const child = spawn(process.execPath, args, { cwd: PROJECT, stdio: ['pipe', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    let output = ''
    const ready = Promise.withResolvers<void>()
    child.stdout.on('data', chunk => {
      output += chunk
      if (output.startsWith('ready')) ready.resolve()
    })
    const ended = once(child, 'close').then(() => output.slice('ready'.length))
    return { ready: ready.promise, ended, go: () => child.stdin.write('go') }
  })
  await Promise.all(children.map(({ ready }) => ready))
  for (const { go } of children) go()
  const secrets = await Promise.all(children.map(({ ended }) => ended))
  t.equal(new Set(secrets).size, 1, 'one secret')
  t.ok(Buffer.byteLength(secrets[0] ?? '') >= 32, 'of 32 bytes or more')
  t.equal(keptSecret(file), secrets[0], 'and the next start finds it')
  t.equal(readFileSync(file, 'utf8').trim(), secrets[0])
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.strictSame(readdirSync(folder), ['jwt-secret'], 'no drafts are left')
})

t.test('a file that holds no secret is refused, and left as it is (DESIGN §5)', t => {
  const folder = temporaryFolder(t)
  const whole = keptSecret(join(folder, 'whole'))
  for (const [name, text] of Object.entries({
    empty: '',
    cut: whole.slice(0, 31),
    blank: `${' '.repeat(40)}\n`,
  })) {
    const file = join(folder, name)
    writeFileSync(file, text)
    t.throws(() => keptSecret(file), { message: name }, `${name}: the message names the file`)
    t.equal(readFileSync(file, 'utf8'), text)
  }
  t.not(keptSecret(join(folder, 'another')), whole, 'every secret is new')
  t.throws(() => keptSecret(folder), 'a folder is no secret')
  t.throws(() => keptSecret(join(folder, 'missing', 'secret')), 'a folder that is not there')
  t.end()
})

const smallHashing = (t: Context): PasswordHashing => {
  const hashing = new PasswordHashing({ threads: 1, maxWaiting: 2 })
  t.teardown(() => hashing.close())
  return hashing
}

/** Starts all at once. @returns what came of them, in the order in which they ended. */
const outcomes = async (tasks: Promise<unknown>[]): Promise<string[]> => {
  const ended: string[] = []
  const note = (error: unknown): number =>
    ended.push(error instanceof ServiceError ? error.code : `unexpected ${error}`)
  await Promise.all(tasks.map(task => task.then(() => ended.push('done'), note)))
  return ended
}

t.test('past the bound of the queue the answer is `overloaded` at once (DESIGN §5)', async t => {
  const hashing = smallHashing(t)
  const encoded = await hashing.hash('a pass phrase')
  const twelve = (task: () => Promise<unknown>): Promise<unknown>[] => Array.from({ length: 12 }, task)
  const kinds = {
    hash: () => hashing.hash('a pass phrase'),
    'right password': () => hashing.verify('a pass phrase', encoded),
    'wrong password': () => hashing.verify('another', encoded),
    // Refused as often as the others: it costs a hash as they do.
    'no account': () => hashing.verify('a pass phrase', null),
  }
  for (const [name, task] of Object.entries(kinds)) {
    const refused = Array.from({ length: 9 }, () => 'overloaded')
    t.strictSame(
      await outcomes(twelve(task)),
      [...refused, 'done', 'done', 'done'],
      `${name}: one works, two wait, the others are told before any of them is done`,
    )
  }
  t.equal(await hashing.verify('a pass phrase', encoded), true, 'and it goes on')
  const overloaded = (await Promise.allSettled(twelve(kinds.hash))).find(
    ({ status }) => status === 'rejected',
  )
  t.match(overloaded, { reason: { status: 503, headers: { 'retry-after': /^\d+$/ } } })
})

t.test('a password verifies against its own hash alone (DESIGN §4, §5)', async t => {
  const hashing = smallHashing(t)
  const long = `${'x'.repeat(127)}y`
  const encoded = await hashing.hash(long)
  t.match(encoded, /^\$argon2id\$v=19\$/)
  t.equal(await hashing.verify(long, encoded), true)
  t.equal(await hashing.verify(`${'x'.repeat(127)}z`, encoded), false, 'the last character counts')
  t.equal(await hashing.verify(long.slice(0, -1), encoded), false)
  t.equal(await hashing.verify(long, null), false, 'no account')
  t.equal(await hashing.verify('', null), false)
  t.not(await hashing.hash(long), encoded, 'every hash has a salt of its own')
  const nul = await hashing.hash('a pass\u0000phrase')
  t.equal(await hashing.verify('a pass\u0000phrase', nul), true)
  t.equal(await hashing.verify('a pass\u0000', nul), false, 'not cut at NUL')
})

t.test('hashes weaker than m = 19 MiB, t = 2, p = 1 are reported, and verify (DESIGN §4)', async t => {
  const hashing = smallHashing(t)
  const password = 'a pass phrase'
  const made = (memoryCost: number, timeCost: number) =>
    hashSync(password, { memoryCost, timeCost, parallelism: 1 })
  const weak = [made(8_192, 2), made(19_455, 2), made(19_456, 1), made(65_536, 1)]
  for (const encoded of weak) {
    t.equal(isWeak(encoded), true, encoded.slice(0, 32))
    t.equal(await hashing.verify(password, encoded), true)
  }
  for (const encoded of [await hashing.hash(password), made(19_456, 2), made(19_456, 3), made(32_768, 2)]) {
    t.equal(isWeak(encoded), false, encoded.slice(0, 32))
  }
})
