/**
 * Keys of access tokens: what others verify, rotation, changes of the algorithm, and generated keys (docs/design.md, "Tokens and
 * sessions").
 */
import { spawn } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { FastifyInstance } from 'fastify'
import {
  calculateJwkThumbprint,
  createRemoteJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  type JWK,
  jwtVerify,
} from 'jose'
import t, { type Test } from 'tap'
import { accountStatus, build, JWT_SECRET, newFile, signUp, temporaryFolder } from '../support/build.ts'
import { buildHost, hostConfig, tokenAt } from '../support/host.ts'
import { startServer } from '../support/process.ts'
import { remoteAccountStatus, remoteSignUp } from '../support/remote-accounts.ts'
import { type AsymmetricAlgorithm, newPem } from '../support/token-signers.ts'

const ALGORITHMS: readonly AsymmetricAlgorithm[] = ['EdDSA', 'ES256']
const PROJECT = join(import.meta.dirname, '..', '..')
const JWKS = '/.well-known/jwks.json'
const OTHER_SECRET = 'another-jwt-secret-abcdef0123456789abcdef0123456789'

const keysOf = async (app: FastifyInstance, url = JWKS): Promise<JWK[]> => {
  const response = await app.inject(url)
  if (response.statusCode !== 200) throw new Error(`${url} returned ${response.statusCode}`)
  return response.json().keys
}

const idsOf = async (app: FastifyInstance): Promise<(string | undefined)[]> =>
  (await keysOf(app)).map(({ kid }) => kid)

const kidOf = (token: string): string => decodeProtectedHeader(token).kid ?? ''

type Env = Record<string, string>

/** Starts the service again and again on one database, each time with other settings. */
const restarts = (t: Test, DATABASE_URL: string) => {
  let running: FastifyInstance | undefined
  return async (env: Env): Promise<FastifyInstance> => {
    await running?.close()
    running = await build(t, { env: { DATABASE_URL, ...env } })
    return running
  }
}

for (const algorithm of ALGORITHMS)
  t.test(`others verify ${algorithm} tokens with the published keys`, async t => {
    const PUBLIC_URL = 'https://accounts.example.com/auth'
    const env = { JWT_ALGORITHM: algorithm, JWT_PRIVATE_KEY: newPem(algorithm), PUBLIC_URL }
    const app = await build(t, { env: { ...env, JWT_AUDIENCE: 'https://api.example.com' } })
    const url = await app.listen({ port: 0 })
    const { id, token } = await signUp(app)
    const keys = createRemoteJWKSet(new URL(`${url}${JWKS}`))
    const expected = {
      issuer: PUBLIC_URL,
      audience: 'https://api.example.com',
      typ: 'at+jwt',
      algorithms: [algorithm],
      requiredClaims: ['sub', 'sid', 'iat', 'exp'],
    }
    const { payload, protectedHeader } = await jwtVerify(token, keys, expected)
    t.equal(payload.sub, id)
    t.equal(protectedHeader.alg, algorithm)
    await t.rejects(jwtVerify(token, keys, { ...expected, audience: 'gatehouse' }), { message: /"aud"/ })
    await t.rejects(jwtVerify(token, keys, { ...expected, issuer: url }), { message: /"iss"/ })
    // Many, because an ES256 signature is random.
    for (let round = 0; round < 20; round += 1)
      await t.resolves(jwtVerify((await signUp(app)).token, keys, expected))
  })

t.test('the key set has public keys only, and may be cached for five minutes', async t => {
  const pems = { EdDSA: newPem('EdDSA'), ES256: newPem('ES256') }
  const app = await build(t, {
    env: { JWT_ALGORITHM: 'ES256', JWT_PRIVATE_KEY: pems.ES256, JWT_PRIVATE_KEY_PREVIOUS: pems.EdDSA },
  })
  const response = await app.inject(JWKS)
  t.match(response.headers, {
    'content-type': /^application\/json/,
    'cache-control': 'public, max-age=300',
  })
  const digest = /^[\w-]{43}$/
  const { keys } = response.json()
  const common = { kid: digest, use: 'sig' }
  t.match(keys, [
    { kty: 'EC', crv: 'P-256', x: digest, y: digest, alg: 'ES256', ...common },
    { kty: 'OKP', crv: 'Ed25519', x: digest, alg: 'EdDSA', ...common },
  ])
  t.same(
    keys.map((key: JWK) => Object.keys(key).sort()),
    [
      ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'],
      ['alg', 'crv', 'kid', 'kty', 'use', 'x'],
    ],
    'nothing else, in particular no d',
  )
  for (const key of keys) t.equal(key.kid, await calculateJwkThumbprint(key), 'RFC 7638')
  t.same(Object.keys(response.json()), ['keys'])
  for (const pem of Object.values(pems)) {
    const { d = '' } = createPrivateKey(pem).export({ format: 'jwk' })
    t.notMatch(response.body, d)
  }
  t.equal(kidOf((await signUp(app)).token), keys[0].kid, 'the first one signs')

  const head = await app.inject({ method: 'HEAD', url: JWKS })
  t.equal(head.statusCode, 200)
  t.equal(head.body, '')
  t.equal(head.headers['cache-control'], 'public, max-age=300')
})

t.test('a key id is the thumbprint of RFC 8037 appendix A.3', async t => {
  const d = 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A'
  const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' })
  const JWT_PRIVATE_KEY = key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const app = await build(t, { env: { JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY } })
  const kid = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'
  t.same(await keysOf(app), [{ kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' }])
  t.equal(kidOf((await signUp(app)).token), kid)
})

t.test('with secrets alone the key set is empty', async t => {
  const app = await build(t, { env: { JWT_SECRET_PREVIOUS: OTHER_SECRET } })
  t.same((await app.inject(JWKS)).json(), { keys: [] })
})

t.test('embedded, key set and issuer are below the prefix', async t => {
  const config = { ...hostConfig(t), JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY: newPem('EdDSA') }
  const host = await buildHost(t, { config })
  const [key] = await keysOf(host, `/auth${JWKS}`)
  t.equal((await host.inject(JWKS)).statusCode, 404)
  const { payload } = await jwtVerify(await tokenAt(host), key ?? {}, { audience: 'gatehouse' })
  t.equal(payload.iss, 'http://127.0.0.1:3000/auth')
})

t.test('a key is rotated without a sign-out; its tokens end when it is removed', async t => {
  const start = restarts(t, await newFile(t))
  const [JWT_PRIVATE_KEY, first, second] = [newPem('EdDSA'), newPem('EdDSA'), newPem('ES256')]
  let app = await start({ JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY: first })
  const { token: old } = await signUp(app)

  const previous = { JWT_PRIVATE_KEY_PREVIOUS: first }
  app = await start({ JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY, ...previous })
  t.equal(await accountStatus(app, old), 200)
  const { token: fresh } = await signUp(app)
  t.same(await idsOf(app), [kidOf(fresh), kidOf(old)])

  app = await start({ JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY })
  t.equal(await accountStatus(app, old), 401)
  t.equal(await accountStatus(app, fresh), 200)
  t.same(await idsOf(app), [kidOf(fresh)])

  const other = {
    JWT_ALGORITHM: 'ES256',
    JWT_PRIVATE_KEY: second,
    JWT_PRIVATE_KEY_PREVIOUS: JWT_PRIVATE_KEY,
  }
  app = await start(other)
  t.equal(await accountStatus(app, fresh), 200, 'the previous key may be of the other algorithm')
  t.equal(decodeProtectedHeader((await signUp(app)).token).alg, 'ES256')
})

t.test('a change of the algorithm signs nobody out, in either direction', async t => {
  const start = restarts(t, await newFile(t))
  const JWT_PRIVATE_KEY = newPem('ES256')
  let app = await start({ JWT_SECRET: OTHER_SECRET })
  const { token: oldest } = await signUp(app)
  const secrets = { JWT_SECRET, JWT_SECRET_PREVIOUS: OTHER_SECRET }
  app = await start(secrets)
  const { token: secret } = await signUp(app)

  app = await start({ ...secrets, JWT_PRIVATE_KEY })
  t.equal((await idsOf(app)).length, 1, 'a key is published before it signs')
  t.equal(decodeProtectedHeader((await signUp(app)).token).alg, 'HS256')

  app = await start({ ...secrets, JWT_ALGORITHM: 'ES256', JWT_PRIVATE_KEY })
  for (const token of [oldest, secret]) t.equal(await accountStatus(app, token), 200, 'HS256 to ES256')
  const { token: asymmetric } = await signUp(app)
  t.equal(decodeProtectedHeader(asymmetric).alg, 'ES256')
  t.same(await idsOf(app), [kidOf(asymmetric)])

  app = await start({ JWT_SECRET, JWT_PRIVATE_KEY_PREVIOUS: JWT_PRIVATE_KEY })
  t.equal(await accountStatus(app, asymmetric), 200, 'ES256 to HS256')
  t.equal(await accountStatus(app, secret), 200)
  t.equal(await accountStatus(app, oldest), 401, 'its secret was removed')
  t.same(await idsOf(app), [kidOf(asymmetric)], 'still published: its tokens are still valid')

  app = await start({ JWT_SECRET })
  t.equal(await accountStatus(app, asymmetric), 401)
  t.same(await idsOf(app), [])
})

t.test('tokens for the previous audience are accepted, for others not', async t => {
  const start = restarts(t, await newFile(t))
  for (const algorithm of ['HS256', ...ALGORITHMS] as const) {
    const key: Env = algorithm === 'HS256' ? {} : { JWT_PRIVATE_KEY: newPem(algorithm) }
    const env = { JWT_ALGORITHM: algorithm, ...key }
    let app = await start(env)
    const { token } = await signUp(app)
    const JWT_AUDIENCE = 'https://api.example.com'
    app = await start({ ...env, JWT_AUDIENCE, JWT_AUDIENCE_PREVIOUS: 'gatehouse' })
    t.equal(await accountStatus(app, token), 200, `${algorithm}: the previous one`)
    const { token: fresh } = await signUp(app)
    t.equal(await accountStatus(app, fresh), 200)
    app = await start({ ...env, JWT_AUDIENCE })
    t.equal(await accountStatus(app, token), 401, `${algorithm}: no longer`)
    t.equal(await accountStatus(app, fresh), 200)
    app = await start(env)
    t.equal(await accountStatus(app, fresh), 401, `${algorithm}: of another service with the same key`)
  }
})

t.test('the longest issuer and audience fit into a token', async t => {
  const JWT_AUDIENCE = 'a'.repeat(256)
  const PUBLIC_URL = 'https://accounts.example.com/'.padEnd(512, 'a')
  const env = { JWT_ALGORITHM: 'ES256', JWT_PRIVATE_KEY: newPem('ES256'), JWT_AUDIENCE, PUBLIC_URL }
  const app = await build(t, { env: { DATABASE_URL: await newFile(t), ...env } })
  const { token } = await signUp(app)
  t.equal(await accountStatus(app, token), 200)
  t.match(decodeJwt(token), { iss: PUBLIC_URL, aud: JWT_AUDIENCE })
})

t.test('a change of PUBLIC_URL signs nobody out', async t => {
  const start = restarts(t, await newFile(t))
  const env = { JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY: newPem('EdDSA') }
  const { token } = await signUp(await start(env))
  const app = await start({ ...env, PUBLIC_URL: 'https://accounts.example.com' })
  t.equal(await accountStatus(app, token), 200)
})

t.test('on SQLite missing keys are generated once, and all of them verify', async t => {
  const folder = temporaryFolder(t)
  const start = restarts(t, `sqlite:${join(folder, 'test.db')}`)
  const generated = () => readdirSync(folder).filter(name => /jwt/.test(name))
  const tokens: Record<string, string> = {}
  for (const JWT_ALGORITHM of ['HS256', 'EdDSA', 'ES256', 'EdDSA', 'HS256']) {
    const app = await start({ JWT_ALGORITHM, JWT_SECRET: '' })
    for (const [name, token] of Object.entries(tokens))
      t.equal(await accountStatus(app, token), 200, `a token of ${name} with ${JWT_ALGORITHM}`)
    const { token } = await signUp(app)
    const former = tokens[JWT_ALGORITHM]
    if (former !== undefined) t.equal(kidOf(token), kidOf(former), 'the same key as before')
    tokens[JWT_ALGORITHM] = token
  }
  t.same(generated().sort(), ['test.db.jwt-eddsa.pem', 'test.db.jwt-es256.pem', 'test.db.jwt-secret'])
  for (const name of generated()) t.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name)

  const { EdDSA: token = '', ES256: other = '' } = tokens
  const pem = readFileSync(join(folder, 'test.db.jwt-eddsa.pem'), 'utf8')
  let app = await start({ JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY: newPem('EdDSA') })
  t.equal(await accountStatus(app, token), 401, 'a setting replaces generated keys')
  app = await start({
    JWT_ALGORITHM: 'EdDSA',
    JWT_PRIVATE_KEY: newPem('EdDSA'),
    JWT_PRIVATE_KEY_PREVIOUS: pem,
  })
  t.equal(await accountStatus(app, token), 200)

  rmSync(join(folder, 'test.db.jwt-es256.pem'))
  app = await start({ JWT_ALGORITHM: 'EdDSA' })
  t.equal(await accountStatus(app, token), 200)
  t.equal(await accountStatus(app, other), 401, 'a removed key verifies nothing')
  t.notOk(generated().includes('test.db.jwt-es256.pem'), 'a key that does not sign is not generated')
})

t.test('a damaged key file stops the start and stays as it is', async t => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'test.db.jwt-eddsa.pem')
  const env = { DATABASE_URL: `sqlite:${join(folder, 'test.db')}`, JWT_ALGORITHM: 'EdDSA' }
  for (const text of ['', newPem('EdDSA').slice(0, 60), newPem('ES256'), 'a'.repeat(64)]) {
    writeFileSync(file, text)
    for (const JWT_ALGORITHM of ['EdDSA', 'HS256'])
      await t.rejects(build(t, { env: { ...env, JWT_ALGORITHM } }), {
        code: 'BAD_SECRET_FILE',
        message: /test\.db\.jwt-eddsa\.pem must/,
      })
    t.equal(readFileSync(file, 'utf8'), text)
  }
})

/** Reads or creates a key at the given time, and prints its id. */
const READ_KEY = `
import { readPrivateKey } from './src/core/auth/secret-file.ts'
import { keyOfPrivateKey } from './src/core/auth/signing-keys.ts'
const [databaseFile, algorithm] = process.argv.slice(1)
process.stdout.write('ready ')
process.stdin.once('data', at => {
  while (Date.now() < Number(at)) {}
  process.stdout.write(keyOfPrivateKey(readPrivateKey({ databaseFile }, algorithm)).id)
  process.stdin.destroy()
})`

for (const algorithm of ALGORITHMS)
  t.test(`processes that create a ${algorithm} key at the same time share one`, async t => {
    const folder = temporaryFolder(t)
    const children = Array.from({ length: 3 }, () => {
      const args = ['--input-type=module-typescript', '-e', READ_KEY, join(folder, 'test.db'), algorithm]
      const child = spawn(process.execPath, args, { cwd: PROJECT, stdio: ['pipe', 'pipe', 'inherit'] })
      t.teardown(() => child.kill('SIGKILL'))
      return { child, ready: once(child.stdout, 'data') }
    })
    await Promise.all(children.map(({ ready }) => ready))
    const at = Date.now() + 100
    const ids = await Promise.all(
      children.map(({ child }) => {
        child.stdin.write(String(at))
        return text(child.stdout)
      }),
    )
    t.equal(new Set(ids).size, 1, 'one key')
    t.match(ids[0], /^[\w-]{43}$/)
    t.same(readdirSync(folder), [`test.db.jwt-${algorithm.toLowerCase()}.pem`], 'no drafts are left')
  })

t.test('processes on one SQLite file accept tokens of each other', async t => {
  const folder = temporaryFolder(t)
  const env = { JWT_ALGORITHM: 'EdDSA', JWT_SECRET: '' }
  const options = { databaseFile: join(folder, 'test.db'), env }
  const [one, two] = await Promise.all([startServer(t, options), startServer(t, options)])
  const sets = await Promise.all([one, two].map(async ({ url }) => (await fetch(url + JWKS)).json()))
  t.equal((sets[0] as { keys: JWK[] }).keys.length, 1)
  t.same(sets[0], sets[1])
  const { token } = await remoteSignUp(one, 'shared@example.com')
  t.equal(await remoteAccountStatus(two, token), 200)
  t.same(
    readdirSync(folder).filter(name => /jwt/.test(name)),
    ['test.db.jwt-eddsa.pem'],
    'no secret that nothing needs',
  )
})
