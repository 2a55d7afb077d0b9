/** OIDC_PROVIDERS is checked at the start, with one sentence for each mistake (docs/design.md, "Other providers"). */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { JWT_SECRET, temporaryFolder } from '../support/build.ts'
import { loadConfig } from '../support/config.ts'

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
const pemOf = ({ privateKey }: { privateKey: KeyObject }): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const pem = pemOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }))

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
  const apple = { id: 'apple', preset: 'apple', clientId: 'c', keyId: 'k', teamId: 't' }
  const endpoints = { authorization: 'https://a', token: 'https://a', userInfo: 'https://a' }
  const oauth2 = { type: 'oauth2', endpoints }
  const weak = pemOf(generateKeyPairSync('rsa', { modulusLength: 1_024 }))
  const p384 = pemOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }))
  const rsa = pemOf(generateKeyPairSync('rsa', { modulusLength: 2_048 }))
  const cases: readonly (readonly [string, unknown, string])[] = [
    ['no list', { id: 'one' }, 'must be a JSON list of providers'],
    ['no object', ['one'], 'provider at position 1: it must be an object'],
    ['no id', [{ name: 'x' }], 'provider at position 1: id must be lower-case letters'],
    ['a wrong id', of({ id: 'A/B' }), 'id must be lower-case letters, digits and hyphens'],
    ['an id that is no text', of({ id: 7 }), 'id must be lower-case letters, digits and hyphens'],
    ['a name of two lines', of({ name: 'a\nb' }), 'name must be a text of at most 64 characters in one line'],
    ['a blank name', of({ name: ' ' }), 'name must be a text'],
    ['a long name', of({ name: 'x'.repeat(65) }), 'name must be a text'],
    [
      'another spelling',
      of({ clientsecret: 'x' }),
      'provider one: there is no property "clientsecret": write clientSecret',
    ],
    ['a standard name', of({ client_id: 'x' }), 'there is no property "client_id": write clientId'],
    [
      'an unknown property',
      of({ tenants: 'x' }),
      'there is no property "tenants": leave it out, or choose one of id, preset, type',
    ],
    ['a blank text', of({ clientSecret: ' ' }), 'clientSecret must be a text'],
    ['nonce of text', of({ nonce: 'false' }), 'nonce must be true or false'],
    ['nonce of oauth2', of({ ...oauth2, nonce: false }), 'nonce is for type oidc'],
    [
      'another method',
      of({ tokenEndpointAuthMethod: 'none' }),
      'tokenEndpointAuthMethod must be client_secret_basic or client_secret_post',
    ],
    [
      'a method of no secret',
      [{ ...withoutSecret, privateKey: pem, tokenEndpointAuthMethod: 'client_secret_post' }],
      'tokenEndpointAuthMethod is for a client secret',
    ],
    ['a property of Object', of({ constructor: 'x' }), 'there is no property "constructor"'],
    ['a duplicate id', [GOOD, GOOD], 'has two providers with the id one'],
    ['no issuer', [withoutIssuer], 'issuer is required'],
    ['plain http', of({ issuer: 'http://idp.example' }), 'issuer must be a URL with https'],
    ['a query', of({ issuer: 'https://idp.example?x' }), 'issuer must be a URL with https, without query'],
    ['an empty query', of({ issuer: 'https://idp.example?' }), 'issuer must be a URL with https'],
    ['a space', of({ issuer: ' https://idp.example' }), 'issuer must be a URL with https'],
    ['a user', of({ issuer: 'https://u:p@idp.example' }), 'issuer must be a URL with https'],
    ['another scheme', of({ issuer: 'javascript:x' }), 'issuer must be a URL with https'],
    ['no secret', [withoutSecret], 'it needs one of clientSecret, clientSecretFile'],
    ['two secrets', of({ privateKey: pem }), 'it needs one of clientSecret, clientSecretFile'],
    [
      'a wrong key',
      [{ ...withoutSecret, privateKey: 'nonsense' }],
      'privateKey must be a private key in PEM',
    ],
    ['a short key', [{ ...withoutSecret, privateKey: weak }], 'RSA with at least 2048 bits'],
    ['another curve', [{ ...withoutSecret, privateKey: p384 }], 'privateKey must be for Ed25519, P-256'],
    ['an RSA key of Apple', [{ ...apple, privateKey: rsa }], 'privateKey must be for P-256'],
    ['a name of no key', of({ keyId: 'k' }), 'keyId and teamId are for a private key'],
    [
      'a team of nobody',
      [{ ...withoutSecret, privateKey: pem, teamId: 't' }],
      'teamId is for the preset apple',
    ],
    ['no openid', of({ scopes: ['email'] }), 'scopes must have openid'],
    ['scopes of text', of({ scopes: 'openid' }), 'scopes must be a list of texts'],
    ['signUp of text', of({ signUp: 'no' }), 'signUp must be true or false'],
    ['another link', of({ link: 'always' }), 'link must be ask or verified-email'],
    ['domains', of({ authoritativeFor: 'example.com' }), 'authoritativeFor must be "*" or a list of domains'],
    ['any domain', of({ authoritativeFor: ['*'] }), 'authoritativeFor must be "*" or a list of domains'],
    ['an address', of({ authoritativeFor: ['a@example.com'] }), 'a list of domains such as example.com'],
    ['links of no domain', of({ link: 'verified-email' }), 'link verified-email needs authoritativeFor'],
    ['multi-factor in a list', of({ isMultiFactor: [] }), 'isMultiFactor must be {amr?, acr?}'],
    ['multi-factor of oauth2', of({ ...oauth2, isMultiFactor: {} }), 'isMultiFactor is for type oidc'],
    ['claims of oidc', of({ claims: { subject: 'id' } }), 'claims is for type oauth2'],
    ['multi-factor', of({ isMultiFactor: { amr: 'mfa' } }), 'isMultiFactor must be {amr?, acr?}'],
    ['another preset', of({ preset: 'facebook' }), 'preset must be one of google, microsoft, apple, github'],
    ['oauth2 without endpoints', of({ type: 'oauth2' }), 'type oauth2 needs endpoints'],
    ['endpoints of oidc', of({ endpoints }), 'endpoints is for type oauth2'],
    [
      'http endpoints',
      of({ ...oauth2, endpoints: { ...endpoints, authorization: 'http://a.example' } }),
      'endpoints must be URLs with https',
    ],
    ['no tenant', [{ ...withoutIssuer, preset: 'microsoft' }], 'tenant is required: the id of one tenant'],
    [
      'an issuer beside the tenant',
      of({ preset: 'microsoft', tenant: TENANT }),
      'issuer follows from tenant',
    ],
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
  t.equal(mistakeOf([{ ...apple, privateKey: pem }]), '')
  t.equal(mistakeOf([{ ...withoutSecret, privateKey: rsa }]), '')
})

t.test('plain http for this machine needs OIDC_ALLOWED_HOSTS', async t => {
  const url = 'http://localhost:4000'
  const endpoints = { authorization: url, token: url, userInfo: url }
  for (const entry of [
    { ...GOOD, issuer: url },
    { ...GOOD, type: 'oauth2', endpoints },
  ]) {
    t.match(
      mistakeOf([entry]),
      /^OIDC_ALLOWED_HOSTS must have localhost:4000: the provider one has plain http there$/,
    )
    t.equal(mistakeOf([entry], { OIDC_ALLOWED_HOSTS: 'localhost:4000' }), '')
  }
})

t.test('presets have the issuers that their providers name', async t => {
  const credential = { clientId: 'c', clientSecret: 's' }
  const issuerOf = (entry: object) =>
    (load([{ id: 'x', ...entry, ...credential }]) as { issuer: string }[])[0]?.issuer
  t.equal(issuerOf({ preset: 'google' }), 'https://accounts.google.com')
  t.equal(issuerOf({ preset: 'apple' }), 'https://appleid.apple.com')
  // In responses since 2026 (RFC 9207): with another one nobody signs in.
  t.equal(issuerOf({ preset: 'github' }), 'https://github.com/login/oauth')
})

t.test('with PostgreSQL ENCRYPTION_KEY is needed', async t => {
  const env = { DATABASE_URL: 'postgres://localhost/x', JWT_SECRET }
  t.match(mistakeOf([GOOD], env), 'ENCRYPTION_KEY is needed with PostgreSQL and OIDC_PROVIDERS')
  t.equal(mistakeOf([], env), '')
})
