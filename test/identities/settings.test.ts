/** OIDC_PROVIDERS is checked at the start, with one sentence for each mistake (docs/design.md, "Other providers"). */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/config.ts'
import { JWT_SECRET, temporaryFolder } from '../support/build.ts'

const GOOD = {
  id: 'one',
  name: 'One',
  issuer: 'https://idp.example',
  clientId: 'gatehouse',
  clientSecret: 'the-secret-of-the-client',
}

const load = (providers: unknown, env: Record<string, string> = {}) =>
  loadConfig({ OIDC_PROVIDERS: JSON.stringify(providers), ...env }).featureSettings.OIDC_PROVIDERS as object[]

/** @returns the message without its first line. */
const mistakeOf = (providers: unknown, env?: Record<string, string>): string => {
  try {
    load(providers, env)
    return ''
  } catch (error) {
    return (error as Error).message.split('\n').slice(1).join('\n').trim()
  }
}

const folder = temporaryFolder(t)
const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString()

t.test('an entry has defaults', async t => {
  t.match(load([GOOD]), [
    {
      id: 'one',
      type: 'oidc',
      scopes: ['openid', 'email', 'profile'],
      signUp: true,
      authoritativeFor: [],
      link: 'ask',
      responseMode: 'query',
      credential: { kind: 'secret', secret: GOOD.clientSecret },
    },
  ])
})

t.test('the list can be a file, and secrets too', async t => {
  const [list, secret, empty] = ['providers.json', 'secret', 'empty'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(secret, ' from-a-file\n')
  writeFileSync(empty, '')
  const { clientSecret: _, ...rest } = GOOD
  writeFileSync(list, JSON.stringify([{ ...rest, clientSecretFile: secret }]))
  const { featureSettings } = loadConfig({ OIDC_PROVIDERS: list })
  t.match(featureSettings.OIDC_PROVIDERS, [{ credential: { secret: 'from-a-file' } }])
  t.match(mistakeOf([{ ...rest, clientSecretFile: empty }]), 'clientSecretFile names a file that is empty')
  t.match(
    mistakeOf([{ ...rest, clientSecretFile: join(folder, 'missing') }]),
    /clientSecretFile names a file that cannot be read: .* \(ENOENT\)/,
  )
  t.match(mistakeOf([], { OIDC_PROVIDERS: join(folder, 'none.json') }), 'names a file that cannot be read')
})

t.test('each mistake has a sentence, which quotes no secret', async t => {
  const { clientSecret: _, ...withoutSecret } = GOOD
  const { issuer: _issuer, ...withoutIssuer } = GOOD
  const of = (further: object) => [{ ...GOOD, ...further }]
  const TENANT = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'
  const cases: readonly (readonly [string, unknown, string])[] = [
    ['no list', { id: 'one' }, 'must be a JSON list of providers'],
    ['no object', ['one'], 'provider at position 1: it must be an object'],
    ['no id', [{ name: 'x' }], 'provider at position 1: id must be lower-case letters'],
    ['a wrong id', of({ id: 'A/B' }), 'id must be lower-case letters, digits and hyphens'],
    ['an unknown property', of({ clientsecret: 'x' }), 'provider one: there is no property "clientsecret"'],
    ['a property of Object', of({ constructor: 'x' }), 'there is no property "constructor"'],
    ['a duplicate id', [GOOD, GOOD], 'has two providers with the id one'],
    ['no issuer', [withoutIssuer], 'issuer is required'],
    ['plain http', of({ issuer: 'http://idp.example' }), 'issuer must be a URL with https'],
    ['a query', of({ issuer: 'https://idp.example?x' }), 'issuer must be a URL with https, without query'],
    ['a user', of({ issuer: 'https://u:p@idp.example' }), 'issuer must be a URL with https'],
    ['another scheme', of({ issuer: 'javascript:x' }), 'issuer must be a URL with https'],
    ['no secret', [withoutSecret], 'it needs one of clientSecret, clientSecretFile'],
    ['two secrets', of({ privateKey: pem }), 'it needs one of clientSecret, clientSecretFile'],
    [
      'a wrong key',
      [{ ...withoutSecret, privateKey: 'nonsense' }],
      'privateKey must be a private key in PEM',
    ],
    ['no openid', of({ scopes: ['email'] }), 'scopes must have openid'],
    ['scopes of text', of({ scopes: 'openid' }), 'scopes must be a list of texts'],
    ['signUp of text', of({ signUp: 'no' }), 'signUp must be true or false'],
    ['another link', of({ link: 'always' }), 'link must be ask or verified-email'],
    ['domains', of({ authoritativeFor: 'example.com' }), 'authoritativeFor must be "*" or a list of domains'],
    ['multi-factor', of({ isMultiFactor: { amr: 'mfa' } }), 'isMultiFactor must be {amr?, acr?}'],
    ['another preset', of({ preset: 'facebook' }), 'preset must be one of google, microsoft, apple, github'],
    ['oauth2 without endpoints', of({ type: 'oauth2' }), 'type oauth2 needs endpoints'],
    [
      'endpoints of oidc',
      of({ endpoints: { authorization: 'https://a', token: 'https://a', userInfo: 'https://a' } }),
      'endpoints are for type oauth2',
    ],
    [
      'http endpoints',
      of({
        type: 'oauth2',
        endpoints: { authorization: 'http://a.example', token: 'https://a', userInfo: 'https://a' },
      }),
      'endpoints must be URLs with https',
    ],
    ['no tenant', [{ ...withoutIssuer, preset: 'microsoft' }], 'tenant is required: the id of one tenant'],
    [
      'all tenants',
      of({ issuer: 'https://login.microsoftonline.com/common/v2.0' }),
      'issuer must name one tenant',
    ],
    [
      'a tenant that is none',
      of({ preset: 'microsoft', tenant: 'common' }),
      'tenant must be the id of a tenant',
    ],
    ['no team', [{ ...withoutSecret, preset: 'apple', privateKey: pem }], 'it needs keyId and teamId'],
  ]
  for (const [what, providers, sentence] of cases) {
    const mistake = mistakeOf(providers)
    t.match(mistake, `OIDC_PROVIDERS `, what)
    t.ok(mistake.includes(sentence), `${what}: ${mistake}`)
    t.equal(mistake.split('\n').length, 1, what)
    t.notMatch(mistake, /the-secret|BEGIN|nonsense/, what)
  }
  t.match(mistakeOf([], { OIDC_PROVIDERS: '[{"clientSecret": "the-secret' }), 'must be a JSON list')
  t.notMatch(mistakeOf([], { OIDC_PROVIDERS: '[{"clientSecret": "the-secret' }), 'the-secret')
  t.equal(mistakeOf([{ ...withoutIssuer, preset: 'microsoft', tenant: TENANT }]), '')
  t.equal(mistakeOf([{ ...withoutSecret, preset: 'apple', privateKey: pem, keyId: 'k', teamId: 't' }]), '')
})

t.test('plain http for this machine needs OIDC_ALLOWED_HOSTS', async t => {
  const providers = [{ ...GOOD, issuer: 'http://localhost:4000' }]
  t.match(mistakeOf(providers), 'OIDC_ALLOWED_HOSTS must have localhost:4000')
  t.equal(mistakeOf(providers, { OIDC_ALLOWED_HOSTS: 'localhost:4000' }), '')
})

t.test('with PostgreSQL ENCRYPTION_KEY is needed', async t => {
  const env = { DATABASE_URL: 'postgres://localhost/x', JWT_SECRET }
  t.match(mistakeOf([GOOD], env), 'ENCRYPTION_KEY is needed with PostgreSQL and OIDC_PROVIDERS')
  t.equal(mistakeOf([], env), '')
})
