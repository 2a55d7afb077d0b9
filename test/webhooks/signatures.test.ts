/** Signatures of webhooks, verified by the libraries that receivers use (Standard Webhooks, "Signature scheme"). */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as Svix } from 'svix'
import t from 'tap'
import { build, manualClock } from '../support/build.ts'
import { until } from '../support/until.ts'
import {
  allowing,
  asRoot,
  createWebhook,
  getWebhook,
  type Received,
  receiver,
  status,
} from '../support/webhook-receiver.ts'

const WAIT = 20_000
const DAY = 86_400_000

const headersOf = ({ headers }: Received): Record<string, string> =>
  Object.fromEntries(
    ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name => [name, String(headers[name])]),
  )

const verifiers = [StandardWebhook, Svix]

t.test('W9: the verifiers of npm accept what is sent, and nothing else', async t => {
  const hook = await receiver(t)
  const app = await build(t, { env: allowing(hook) })
  const { secret } = await createWebhook(app, { url: hook.url })
  const [message] = (await hook.arrived(1)) as readonly [Received]
  for (const Verifier of verifiers) {
    const verifier = new Verifier(secret)
    t.doesNotThrow(() => verifier.verify(message.text, headersOf(message)))
    const reserialized = JSON.stringify(JSON.parse(message.text), null, 1)
    t.throws(() => verifier.verify(reserialized, headersOf(message)))
    const otherId = { ...headersOf(message), 'webhook-id': 'other' }
    t.throws(() => verifier.verify(message.text, otherId))
    const other = await createWebhook(app, { url: hook.url })
    t.throws(() => new Verifier(other.secret).verify(message.text, headersOf(message)))
  }
  t.notMatch(message.headers['webhook-id'], /\./, 'an id without full stops')
})

t.test('W8: after a rotation both secrets sign for a day', async t => {
  // The verifiers compare the time with their own clock.
  const clock = manualClock(Date.now() - DAY - 1_000)
  const hook = await receiver(t)
  const app = await build(t, { env: allowing(hook), clock: clock.now })
  const { id, secret: former } = await createWebhook(app, { url: hook.url, types: ['user.deleted'] })
  const call = (action: string) => asRoot(app, { method: 'POST', url: `/admin/webhooks/${id}/${action}` })
  const rotated = (await call('rotate-secret')).json()
  t.match(rotated.secret, /^whsec_[\w+/=]{44}$/)
  t.not(rotated.secret, former)
  t.equal(Date.parse(rotated.formerSecretExpiresAt), clock.now() + DAY)
  await call('ping')
  const [first] = (await hook.arrived(1)) as readonly [Received]
  const signatures = String(first.headers['webhook-signature']).split(' ')
  t.equal(signatures.length, 2)
  const signed = (secret: string, { headers, text }: Received) => {
    const timestamp = new Date(Number(headers['webhook-timestamp']) * 1_000)
    return new StandardWebhook(secret).sign(String(headers['webhook-id']), timestamp, text)
  }
  t.same(signatures, [signed(rotated.secret, first), signed(former, first)])
  clock.advance(DAY + 1_000)
  await call('ping')
  const [, second] = (await hook.arrived(2)) as readonly [Received, Received]
  t.equal(second.headers['webhook-signature'], signed(rotated.secret, second))
  t.doesNotThrow(() => new StandardWebhook(rotated.secret).verify(second.text, headersOf(second)))
})

t.test('a retry has the same id and body, and a new timestamp', async t => {
  const clock = manualClock()
  const hook = await receiver(t, status(500))
  const app = await build(t, { env: allowing(hook), clock: clock.now })
  const { id } = await createWebhook(app, { url: hook.url })
  await until(
    () => getWebhook(app, id),
    ({ failures }) => failures === 1,
    WAIT,
  )
  clock.advance(6_000)
  const [first, second] = (await hook.arrived(2)) as readonly [Received, Received]
  t.equal(first.text, second.text)
  t.equal(first.headers['webhook-id'], second.headers['webhook-id'])
  t.equal(Number(second.headers['webhook-timestamp']) - Number(first.headers['webhook-timestamp']), 6)
})

t.test('a service that signs with EdDSA adds v1a, with the key of its tokens', async t => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const hook = await receiver(t)
  const app = await build(t, {
    env: {
      ...allowing(hook),
      JWT_ALGORITHM: 'EdDSA',
      JWT_PRIVATE_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    },
  })
  const { id, secret } = await createWebhook(app, { url: hook.url })
  const { publicKey } = await getWebhook(app, id)
  t.match(publicKey, /^whpk_/)
  const [jwk] = (await app.inject('/.well-known/jwks.json')).json().keys
  const x = Buffer.from(publicKey.slice('whpk_'.length), 'base64')
  t.equal(x.toString('base64url'), jwk.x)
  const [message] = (await hook.arrived(1)) as readonly [Received]
  const { 'webhook-id': messageId, 'webhook-timestamp': at } = message.headers
  const [symmetric, asymmetric = ''] = String(message.headers['webhook-signature']).split(' ')
  const signed = Buffer.from(`${messageId}.${at}.${message.text}`)
  const [version, signature = ''] = asymmetric.split(',')
  t.equal(version, 'v1a')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: jwk.x }, format: 'jwk' })
  t.ok(verify(null, signed, key, Buffer.from(signature, 'base64')))
  t.equal(
    symmetric,
    new StandardWebhook(secret).sign(String(messageId), new Date(Number(at) * 1_000), message.text),
  )
  t.doesNotThrow(() => new Svix(secret).verify(message.text, headersOf(message)), 'verifiers ignore v1a')
})
