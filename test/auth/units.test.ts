/** Units of `src/core/auth` and `src/base/concurrency`, with real threads, files and processes (docs/design.md, "Tokens and sessions"). */
import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { BoundedQueue } from '#base/concurrency/bounded-queue'
import { KeyedMutex } from '#base/concurrency/keyed-mutex'
import { AccessTokens, isTokenOf } from '#core/auth/access-tokens'
import { AdminAuthenticator } from '#core/auth/admin-authenticator'
import { readOrCreateSecret } from '#core/auth/secret-file'
import { newSession } from '#core/auth/session'
import { keyOfSecret } from '#core/auth/signing-keys'
import { heapTokenCapacity } from '#core/auth/token-cache'
import { ADMIN_KEY, manualClock, temporaryFolder } from '../support/build.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

t.test('KeyedMutex runs work on one key in order', async t => {
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

t.test('KeyedMutex continues after a failure, which rejects only its own call', async t => {
  const mutex = new KeyedMutex()
  const failing = mutex.runExclusive('ada', async () => {
    throw new Error('not this time')
  })
  const next = mutex.runExclusive('ada', async () => 'done')
  await t.rejects(failing, { message: 'not this time' })
  t.equal(await next, 'done')
  t.equal(await mutex.runExclusive('ada', async () => 'again'), 'again')
})

t.test('BoundedQueue rejects work that waits too long and continues with the next', async t => {
  const queue = new BoundedQueue(1, 10, 50)
  const first = Promise.withResolvers<string>()
  const running = queue.run(() => first.promise)
  await t.rejects(
    queue.run(async () => t.fail('its turn never comes')),
    { code: 'overloaded' },
  )
  const waiting = queue.run(async () => 'second')
  first.resolve('first')
  t.equal(await running, 'first', 'what has begun is not ended')
  t.equal(await waiting, 'second')
  await sleep(100)
  t.equal(await queue.run(async () => 'third'), 'third')
})

t.test('an admin key is accepted only if it equals a configured one (§5.2.2)', t => {
  const accepts = (presented: string, ...rootKeys: string[]): boolean => {
    const adminKeys = { find: () => assert.fail('only keys with their form are looked up') }
    const lastRequests = {
      recordAdminKey: () => assert.fail('root keys have no timestamp'),
      latestOf: () => assert.fail('only keys of the store are looked up'),
    }
    const deliverInvalidations = () => undefined
    const tokens = { verify: () => null }
    const clients = { find: () => assert.fail('no token is valid') }
    const deps = {
      ...{ rootKeys, adminKeys, tokens, clients, lastRequests },
      ...{ deliverInvalidations, clock: Date.now },
    }
    const keys = new AdminAuthenticator(deps)
    return keys.authenticate(presented) !== null
  }
  const previous = 'previous-admin-key-0123456789'
  t.ok(accepts(ADMIN_KEY, ADMIN_KEY, previous))
  t.ok(accepts(previous, ADMIN_KEY, previous))
  const wide = [...ADMIN_KEY].map(letter => String.fromCharCode(letter.charCodeAt(0) + 0x100)).join('')
  for (const wrong of [
    '',
    ' ',
    ADMIN_KEY.slice(1),
    ADMIN_KEY.slice(0, -1),
    `${ADMIN_KEY} `,
    `${ADMIN_KEY}\u0000`,
  ]) {
    t.notOk(accepts(wrong, ADMIN_KEY, previous), JSON.stringify(wrong))
  }
  t.notOk(accepts(ADMIN_KEY.toUpperCase(), ADMIN_KEY, previous), 'other case')
  t.notOk(accepts(wide, ADMIN_KEY, previous), 'characters that share the low byte')
  t.notOk(accepts(''), 'no key at all')
  t.notOk(accepts(ADMIN_KEY))
  t.end()
})

t.test('a key id reveals nothing about the secret, and tokens rotate by key id', t => {
  const clock = manualClock()
  const [one, two] = ['1'.repeat(40), '2'.repeat(40)]
  const tokensOf = (secret: string, ...previous: string[]) =>
    new AccessTokens(
      { current: keyOfSecret(secret), others: previous.map(keyOfSecret) },
      { issuer: 'gatehouse', audiences: ['gatehouse'] },
    )
  const [before, during, after] = [tokensOf(one), tokensOf(two, one), tokensOf(two)]
  const session = newSession(
    'ada',
    clock.now(),
    { lifetime: 60_000, idle: 60_000 },
    { method: 'password', amr: ['pwd'] },
  )
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
  const { id } = keyOfSecret(two)
  t.not(id, keyOfSecret(one).id)
  t.equal(id, keyOfSecret(two).id, 'the same secret, the same name')
  t.notOk(two.includes(id) || Buffer.from(two).toString('base64url').includes(id))
  const others = [
    { ...session, createdAt: session.createdAt + 1_000 },
    { ...session, createdAt: session.createdAt - 1_000 },
    { ...session, userId: 'bob' },
  ]
  t.ok(isTokenOf(expected, session))
  t.strictSame(
    others.map(other => isTokenOf(expected, other)),
    [false, false, false],
    'a token belongs to the session that it was issued for',
  )
  t.end()
})

t.test('the number of tokens on the heap follows the heap limit', t => {
  // The limits that V8 reports for `--max-old-space-size=64` and so on: they include the young generation.
  const limits = [64, 96, 128, 256, 4_096].map(size => (size + 192) * 2 ** 20)
  const capacities = limits.map(limit => heapTokenCapacity(limit))
  t.strictSame(capacities, [6_452, 19_358, 32_263, 83_886, 100_000])
  t.equal(heapTokenCapacity(32 * 2 ** 20), 1_000, 'a minimum is always cached')
  t.end()
})

t.test('processes that start concurrently share one secret, readable only by its owner', async t => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'jwt-secret')
  const script = `import { readOrCreateSecret } from './src/core/auth/secret-file.ts'
    process.stdout.write('ready')
    process.stdin.once('data', () => {
      process.stdout.write(readOrCreateSecret(process.argv[1]))
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
  t.equal(readOrCreateSecret(file), secrets[0], 'and the next start finds it')
  t.equal(readFileSync(file, 'utf8').trim(), secrets[0])
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.strictSame(readdirSync(folder), ['jwt-secret'], 'no drafts are left')
})

t.test('a file without a secret is rejected and left unchanged', t => {
  const folder = temporaryFolder(t)
  const whole = readOrCreateSecret(join(folder, 'whole'))
  for (const [name, text] of Object.entries({
    empty: '',
    cut: whole.slice(0, 31),
    blank: `${' '.repeat(40)}\n`,
  })) {
    const file = join(folder, name)
    writeFileSync(file, text)
    t.throws(() => readOrCreateSecret(file), { message: name }, `${name}: the message names the file`)
    t.equal(readFileSync(file, 'utf8'), text)
  }
  t.not(readOrCreateSecret(join(folder, 'another')), whole, 'every secret is new')
  t.throws(() => readOrCreateSecret(folder), 'a folder is no secret')
  t.throws(() => readOrCreateSecret(join(folder, 'missing', 'secret')), 'a folder that is not there')
  t.end()
})
