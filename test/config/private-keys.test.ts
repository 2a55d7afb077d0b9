/** Settings of asymmetric access tokens: the private keys, the algorithm and the audience (docs/design.md, "Tokens and sessions"). */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ConfigError } from '#base/settings/readers'
import { temporaryFolder } from '../support/build.ts'
import { loadConfig } from '../support/config.ts'
import { newPem } from '../support/token-signers.ts'

const SECRET = 'a-secret-of-enough-characters-0123456789'
const POSTGRES = 'postgres://gatehouse:canary@db.example/gatehouse'

const errorsOf = (environment: Record<string, string>): string[] => {
  try {
    loadConfig(environment)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n').slice(1)
  }
}

const pkcs8 = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()
const spki = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString()

const p256 = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

/** A P-256 key with the public key of another one, which is at the end of the encoding. */
const mismatched = (): string => {
  const [one, two] = [p256(), p256()].map(key => key.export({ type: 'pkcs8', format: 'der' }))
  if (one === undefined || two === undefined) throw new Error('no keys')
  const point = 65
  const der = Buffer.concat([one.subarray(0, -point), two.subarray(-point)])
  return `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----`
}

const NEEDED = 'must be a private key in PKCS#8 PEM (-----BEGIN PRIVATE KEY-----)'
const TYPES = 'must be an Ed25519 key (EdDSA) or a P-256 key (ES256), not'

t.test('a key that is not a private key of Ed25519 or P-256 is refused in one sentence', async t => {
  const right = newPem('EdDSA')
  const encryption = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'canary' } as const
  const cases: Record<string, [key: string, sentence: string]> = {
    RSA: [pkcs8(generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey), `${TYPES} rsa`],
    'P-384': [pkcs8(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey), `${TYPES} secp384r1`],
    secp256k1: [
      pkcs8(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey),
      `${TYPES} secp256k1`,
    ],
    Ed448: [pkcs8(generateKeyPairSync('ed448').privateKey), `${TYPES} ed448`],
    X25519: [pkcs8(generateKeyPairSync('x25519').privateKey), `${TYPES} x25519`],
    public: [spki(createPublicKey(right)), `is a public key: it ${NEEDED}`],
    encrypted: [p256().export(encryption).toString(), `is encrypted: it ${NEEDED}, without a passphrase`],
    'encrypted SEC1': [
      p256()
        .export({ ...encryption, type: 'sec1' })
        .toString(),
      `is encrypted: it ${NEEDED}, without a passphrase`,
    ],
    SEC1: [p256().export({ type: 'sec1', format: 'pem' }).toString(), NEEDED],
    JWK: [JSON.stringify(p256().export({ format: 'jwk' })), NEEDED],
    'DER in base64': [right.split('\n').slice(1, -2).join(''), NEEDED],
    'cut off': [right.slice(0, 80), NEEDED],
    'of two keys': [right + newPem('ES256'), NEEDED],
    'with text behind it': [`${right}# canary`, NEEDED],
    'with a changed byte': [right.replace(/\nMC/, '\nMD'), NEEDED],
    'with the public key of another': [mismatched(), 'is damaged: its public key does not match it'],
    'a secret': [SECRET, NEEDED],
  }
  const folder = temporaryFolder(t)
  for (const [title, [key, sentence]] of Object.entries(cases)) {
    const file = join(folder, 'key.pem')
    writeFileSync(file, key)
    for (const [name, value] of [
      ['JWT_PRIVATE_KEY', key],
      ['JWT_PRIVATE_KEY_PREVIOUS', key],
      ['JWT_PRIVATE_KEY', key.replaceAll('\n', '\\n')],
      ['JWT_PRIVATE_KEY_FILE', file],
    ] as const)
      for (const JWT_ALGORITHM of ['HS256', 'EdDSA', 'ES256'])
        t.same(errorsOf({ JWT_ALGORITHM, [name]: value }), [`  ${name} ${sentence}`], `${name}: ${title}`)
  }
})

t.test('the key must belong to the algorithm, the previous one may be of either', async t => {
  const [EdDSA, ES256] = [newPem('EdDSA'), newPem('ES256')]
  t.same(errorsOf({ JWT_ALGORITHM: 'ES256', JWT_PRIVATE_KEY: EdDSA }), [
    '  JWT_PRIVATE_KEY is for Ed25519, but JWT_ALGORITHM=ES256 needs a key for P-256',
  ])
  const file = join(temporaryFolder(t), 'key.pem')
  writeFileSync(file, ES256)
  t.same(errorsOf({ JWT_ALGORITHM: 'EdDSA', JWT_PRIVATE_KEY_FILE: file }), [
    '  JWT_PRIVATE_KEY_FILE is for P-256, but JWT_ALGORITHM=EdDSA needs a key for Ed25519',
  ])
  for (const JWT_PRIVATE_KEY_PREVIOUS of [EdDSA, ES256]) {
    for (const [JWT_ALGORITHM, JWT_PRIVATE_KEY] of Object.entries({ HS256: '', EdDSA, ES256 }))
      t.same(errorsOf({ JWT_ALGORITHM, JWT_PRIVATE_KEY, JWT_PRIVATE_KEY_PREVIOUS }), [])
    const early = { JWT_PRIVATE_KEY: JWT_PRIVATE_KEY_PREVIOUS }
    t.same(errorsOf(early), [], 'before it signs')
    const warning = 'JWT_PRIVATE_KEY signs no tokens while JWT_ALGORITHM is HS256: it only verifies'
    t.ok(loadConfig(early).warnings.includes(warning))
  }
})

t.test('line breaks of a key can be escaped, and a key can be a file', async t => {
  const key = newPem('EdDSA')
  const file = join(temporaryFolder(t), 'key.pem')
  for (const text of [key, key.replaceAll('\n', '\r\n'), `\n${key}\n`, key.replaceAll('\n', '\\n')]) {
    writeFileSync(file, text)
    for (const given of [{ JWT_PRIVATE_KEY: text }, { JWT_PRIVATE_KEY_FILE: file }]) {
      const { privateKey } = loadConfig({ JWT_ALGORITHM: 'EdDSA', ...given }).signingKeys
      if (privateKey === null || !('value' in privateKey)) throw new Error('no key')
      t.equal(pkcs8(privateKey.value.key), key)
    }
  }
})

t.test('PostgreSQL requires the key that signs', async t => {
  const env = { DATABASE_URL: POSTGRES }
  for (const JWT_ALGORITHM of ['EdDSA', 'ES256'] as const) {
    const sentence = `  JWT_PRIVATE_KEY is needed with PostgreSQL and JWT_ALGORITHM=${JWT_ALGORITHM}: make one with npm run cli -- keys new --algorithm ${JWT_ALGORITHM}`
    t.same(errorsOf({ ...env, JWT_ALGORITHM, JWT_SECRET: SECRET }), [sentence])
    t.same(errorsOf({ ...env, JWT_ALGORITHM, JWT_PRIVATE_KEY_PREVIOUS: newPem(JWT_ALGORITHM) }), [sentence])
    const key = { JWT_PRIVATE_KEY: newPem(JWT_ALGORITHM) }
    t.same(errorsOf({ ...env, JWT_ALGORITHM, ...key }), [], 'and no secret')
    t.same(errorsOf({ ...env, JWT_ALGORITHM, ...key, JWT_SECRET_PREVIOUS: SECRET }), [], 'the last one')
    t.match(errorsOf({ ...env, ...key }), [/JWT_SECRET is needed with PostgreSQL/])
    t.match(loadConfig({ JWT_ALGORITHM, DATABASE_URL: 'sqlite:/var/lib/gatehouse.db' }), {
      signingKeys: { signer: { privateKey: { databaseFile: '/var/lib/gatehouse.db' } } },
    })
  }
})

t.test('issuer and audience fit into a token', async t => {
  const PUBLIC_URL = `https://accounts.example.com/${'a'.repeat(483)}`
  t.same(errorsOf({ PUBLIC_URL, JWT_ALGORITHM: 'EdDSA' }), [])
  t.same(errorsOf({ PUBLIC_URL: `${PUBLIC_URL}a`, JWT_ALGORITHM: 'EdDSA' }), [
    '  PUBLIC_URL must have at most 512 characters, because access tokens contain it',
  ])
  t.same(errorsOf({ PUBLIC_URL: `${PUBLIC_URL}a` }), [], 'not in HS256 tokens')
  t.same(errorsOf({ JWT_AUDIENCE: 'a'.repeat(256) }), [])
  t.match(errorsOf({ JWT_AUDIENCE: 'a'.repeat(257) }), [/^ {2}JWT_AUDIENCE must be .* at most 256 /])
  t.same(loadConfig({}).jwtAudiences, ['gatehouse'])
  t.same(loadConfig({ JWT_AUDIENCE: 'a', JWT_AUDIENCE_PREVIOUS: 'https://b/c' }).jwtAudiences, [
    'a',
    'https://b/c',
  ])
})

t.test('in production the log warns if the issuer is only an address of the machine', async t => {
  const env = { NODE_ENV: 'production', ADMIN_KEY: SECRET, JWT_ALGORITHM: 'EdDSA' }
  const sentence = 'PUBLIC_URL is not set: the issuer of access tokens is http://127.0.0.1:3000'
  t.ok(loadConfig(env).warnings.includes(sentence))
  t.notOk(loadConfig({ ...env, PUBLIC_URL: 'https://accounts.example.com' }).warnings.includes(sentence))
  t.notOk(loadConfig({ ...env, JWT_ALGORITHM: 'HS256' }).warnings.includes(sentence))
})
