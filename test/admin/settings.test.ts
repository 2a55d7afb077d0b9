/** `GET /admin/settings` and `GET /admin/providers`, and their pages: the configuration without a secret. */
import { generateKeyPairSync } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { originOf, shownOf, text, withoutCredentials } from '#base/settings/readers'
import { shownDatabase } from '#storage/location'
import { createKey } from '../support/admin-keys.ts'
import { asAdmin, build } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'

const { privateKey } = generateKeyPairSync('ed25519')
const PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** A part that no other value has. */
const SECRETS = {
  adminKeyPrevious: 'previous-admin-7Qk2vX9bLm4T',
  secret: 'jwt-secret-R8wN3pZs6Yc1Hd5Fg0Jk2Vb7',
  secretPrevious: 'jwt-previous-T4mB9xLq2Wv7Rn1Zp6Kc3Yh8',
  encryptionKey: 'encryption-N5hJ8kDw3Qz9Xt2Mv7Bc4Rp1',
  encryptionKeyPrevious: 'encryption-previous-V2cK7pLx4Zn9Qw1R',
  mailPassword: 'mail/pass word+Ü9Xk4',
  mailUser: 'mail-user-8Hd3',
  tlsSecret: 'tls-passphrase-5Gq8',
  clientSecret: 'client-secret-W6zT1nMv9Kp4',
  tracesToken: 'traces-token-3Lf7Yb',
  rangeToken: 'range-token-9Rk2Vm',
}

const ENV = {
  CONSOLE: 'on',
  ADMIN_KEY_PREVIOUS: SECRETS.adminKeyPrevious,
  JWT_SECRET: SECRETS.secret,
  JWT_SECRET_PREVIOUS: SECRETS.secretPrevious,
  JWT_PRIVATE_KEY: PEM,
  ENCRYPTION_KEY: SECRETS.encryptionKey,
  ENCRYPTION_KEY_PREVIOUS: SECRETS.encryptionKeyPrevious,
  MAIL_URL: `smtp://${SECRETS.mailUser}:${encodeURIComponent(SECRETS.mailPassword)}@mail.example.com:587?tls.passphrase=${SECRETS.tlsSecret}`,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:9/${SECRETS.tracesToken}?key=${SECRETS.tracesToken}`,
  BREACHED_PASSWORDS_URL: `https://range.example.com/${SECRETS.rangeToken}`,
  OIDC_PROVIDERS: JSON.stringify([
    {
      id: 'example',
      name: 'Example',
      issuer: 'https://id.example.com',
      clientId: 'gatehouse',
      clientSecret: SECRETS.clientSecret,
    },
  ]),
}

/** A secret as a page, a URL, JSON or base64 would have it. */
const encodingsOf = (secret: string): readonly string[] => [
  secret,
  encodeURIComponent(secret),
  JSON.stringify(secret).slice(1, -1),
  secret.replaceAll('+', '&#43;').replaceAll('/', '&#47;'),
  Buffer.from(secret).toString('base64').replace(/=+$/, ''),
  Buffer.from(secret).toString('base64url'),
  Buffer.from(secret).toString('hex'),
]

const PEM_LINE = PEM.split('\n')[1] ?? ''

const secretsIn = (body: string, app: FastifyInstance): readonly string[] =>
  [...Object.values(SECRETS), PEM_LINE, ...app.config.adminKeys].filter(secret =>
    encodingsOf(secret).some(encoded => body.includes(encoded)),
  )

t.test('a full configuration', async t => {
  const app = await build(t, { env: ENV })
  const get = (url: string, headers = {}) => app.inject({ url, headers: { ...asAdmin, ...headers } })

  t.test('settings have their values, but no secret', async t => {
    const response = await get('/admin/settings')
    t.equal(response.statusCode, 200)
    t.equal(response.headers['cache-control'], 'no-store')
    t.strictSame(secretsIn(response.body, app), [])
    const { results } = response.json<{ results: { name: string }[] }>()
    const named = (name: string) => results.find(each => each.name === name)
    t.match(named('SESSION_LIFETIME'), { feature: null, value: '30d', default: '30d', set: false })
    t.match(named('CONSOLE'), { feature: 'console', value: 'on', default: 'off', set: true })
    t.match(named('MAIL_URL'), { value: 'smtp://mail.example.com:587', default: null, set: true })
    t.match(named('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'), { value: 'http://127.0.0.1:9', set: true })
    t.match(named('BREACHED_PASSWORDS_URL'), { value: 'https://range.example.com', set: true })
    for (const name of ['ADMIN_KEY', 'JWT_SECRET', 'JWT_PRIVATE_KEY', 'ENCRYPTION_KEY', 'OIDC_PROVIDERS'])
      t.match(named(name), { value: null, default: null, set: true }, name)
    t.match(named('METRICS_PORT'), { value: null, set: false })
  })

  t.test('providers have no secret', async t => {
    const response = await get('/admin/providers')
    t.strictSame(secretsIn(response.body, app), [])
    t.match(response.json().results, [
      { id: 'example', name: 'Example', type: 'oidc', issuer: 'https://id.example.com', signUp: Boolean },
    ])
  })

  t.test('the pages have no secret, in both languages', async t => {
    for (const language of ['en', 'de']) {
      const client = await signedInTo(app, undefined, { headers: { 'accept-language': language } })
      for (const [path, text] of [
        ['settings', 'smtp://mail.example.com:587'],
        ['providers', 'https://id.example.com'],
      ] as const) {
        await client.open(`/console/${path}`)
        t.equal(client.status, 200)
        t.ok(client.page.includes(text), `${path} ${language}`)
        t.strictSame(secretsIn(client.page, app), [])
      }
    }
  })

  t.test('both need settings:read', async t => {
    const { headers } = await createKey(app, ['status:read'])
    for (const url of ['/admin/settings', '/admin/providers'])
      t.equal((await app.inject({ url, headers })).statusCode, 403)
    const { headers: allowed } = await createKey(app, ['settings:read'])
    for (const url of ['/admin/settings', '/admin/providers'])
      t.equal((await app.inject({ url, headers: allowed })).statusCode, 200)
  })
})

t.test('what is seen of URLs', async t => {
  const shown: readonly (readonly [url: string, seen: string])[] = [
    ['smtp://mail.example.com', 'smtp://mail.example.com'],
    ['smtps://user:pass@mail.example.com:465', 'smtps://mail.example.com:465'],
    ['smtp://user:a@b@mail.example.com', 'smtp://mail.example.com'],
    ['smtp://user:12#secret@mail.example.com', 'smtp://'],
    ['smtp://user:12/secret@mail.example.com', 'smtp://mail.example.com'],
    ['smtp://user:pass@mail.example.com?tls.passphrase=a@b', 'smtp://'],
    ['postgres://u:p@a.example.com:5432,b.example.com/db', 'postgres://a.example.com:5432,b.example.com/db'],
    ['postgres:///db?host=/run/postgresql&password=secret', 'postgres:///db'],
    ['off', 'off'],
  ]
  for (const [url, seen] of shown) t.equal(withoutCredentials(url), seen, url)
  t.equal(shownDatabase('sqlite:data/@/gatehouse.db'), 'sqlite:data/@/gatehouse.db')
  t.equal(originOf('https://user@example.com/token?key=1'), 'https://example.com')
})

t.test('a setting without a mark is not seen', async t => {
  const setting = { read: text, default: null, description: 'of a team' }
  t.equal(shownOf(setting, 'secret'), null)
  t.equal(shownOf({ ...setting, shown: true }, 'open'), 'open')
})
