/** The form of access tokens, and that everything else is rejected (§5.1.3; docs/design.md, "Tokens and sessions"), with each algorithm. */
import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  bearer,
  build,
  cookie,
  JWT_SECRET,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
} from '../support/build.ts'
import {
  keySigner,
  ORDERS,
  otherSignature,
  secretSigner,
  type TokenSigner,
  toBytes,
  toNumber,
} from '../support/token-signers.ts'

type Json = Record<string, unknown>

const encode = (text: string | Buffer): string => Buffer.from(text).toString('base64url')
const parts = (token: string): [string, string, string] => {
  const [header = '', payload = '', signature = ''] = token.split('.')
  return [header, payload, signature]
}
const decode = (part: string): Json => JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))

/** Signs any two texts or byte strings. */
const signWith = (signText: TokenSigner['sign'], header: string | Buffer, payload: string | Buffer) => {
  const signed = `${encode(header)}.${encode(payload)}`
  return `${signed}.${encode(signText(signed))}`
}

const hmac =
  (secret: string | Buffer, hash = 'sha256'): TokenSigner['sign'] =>
  text =>
    createHmac(hash, secret).update(text).digest()

const isHeaderSafe = (token: string): boolean => /^[\w.=-]+$/.test(token)

const runWith = async (t: Test, signer: TokenSigner): Promise<void> => {
  const app = await build(t, { env: signer.env })

  /** Changes properties of a real token; `undefined` removes one. */
  const forgery = (token: string) => {
    const [head, body] = parts(token)
    const header = decode(head)
    const payload = decode(body)
    const json = (from: Json, changes: Json) => JSON.stringify({ ...from, ...changes })
    const sign = (head: string | Buffer, body: string | Buffer, signText = signer.sign) =>
      signWith(signText, head, body)
    return {
      header,
      payload,
      withHeader: (changes: Json, signText = signer.sign) =>
        sign(json(header, changes), JSON.stringify(payload), signText),
      withClaims: (changes: Json) => sign(JSON.stringify(header), json(payload, changes)),
      withExpText: (exp: string) =>
        sign(JSON.stringify(header), JSON.stringify(payload).replace(/"exp":\d+/, `"exp":${exp}`)),
      withPayload: (bytes: string | Buffer) => sign(JSON.stringify(header), bytes),
      withHeaderText: (bytes: string | Buffer) => sign(bytes, JSON.stringify(payload)),
      signedBy: (signText: TokenSigner['sign']) =>
        sign(JSON.stringify(header), JSON.stringify(payload), signText),
    }
  }

  type Forgery = ReturnType<typeof forgery>

  /** Asserts that the request is anonymous by header and cookie (§5.1.1), and public routes are served (§5.1.3). */
  const anonymous = async (t: Test, variants: Record<string, string>) => {
    for (const [name, token] of Object.entries(variants)) {
      for (const headers of isHeaderSafe(token) ? [bearer(token), cookie(token)] : [bearer(token)]) {
        const rejected = await app.inject({ url: '/account', headers })
        t.equal(rejected.statusCode, 401, `${name}: private is 401, by ${Object.keys(headers)}`)
        t.strictSame(Object.keys(rejected.json()), ['errors'], `${name}: the errors body`)
        t.equal((await app.inject({ url: '/health', headers })).statusCode, 200, `${name}: public is served`)
      }
    }
  }

  const start = async (t: Test): Promise<{ user: SignedUp; forged: Forgery }> => {
    const user = await signUp(app)
    const forged = forgery(user.token)
    const response = await app.inject({ url: '/account', headers: bearer(forged.withClaims({})) })
    t.equal(response.statusCode, 200, 'control: the token signed anew, unchanged, verifies')
    t.equal(response.json().id, user.id)
    return { user, forged }
  }

  t.test('a token is a JWT with a fixed header and claims', async t => {
    const payload = { email: 'form@example.com', password: PASSWORD }
    const signedUp = await app.inject({ method: 'POST', url: '/account/sign-up', payload })
    const { accessToken, expiresAt, user } = signedUp.json()
    const { header, payload: claims } = forgery(accessToken)
    t.strictSame(Object.keys(header).sort(), ['alg', 'kid', 'typ'])
    t.match(header, { alg: signer.algorithm, typ: 'at+jwt', kid: /^\S+$/ })
    t.notMatch(String(header.kid), JWT_SECRET.slice(0, 4), 'the key id tells nothing about the secret')
    t.strictSame(Object.keys(claims).sort(), ['aud', 'exp', 'iat', 'iss', 'sid', 'sub'])
    t.equal(claims.sub, user.id)
    t.match(claims.sid, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    t.equal(claims.iss, signer.algorithm === 'HS256' ? 'gatehouse' : 'http://127.0.0.1:3000')
    t.equal(claims.aud, 'gatehouse')
    t.ok(Number.isSafeInteger(claims.iat) && Number(claims.iat) <= Date.now() / 1_000)
    t.equal(Number(claims.exp) * 1_000, Date.parse(expiresAt), 'exp is the time in the body')

    const again = await signIn(app, payload.email)
    const second = forgery(again.json().accessToken).payload
    t.equal(second.sub, claims.sub)
    t.not(second.sid, claims.sid, 'every sign-in opens a session of its own')
  })

  t.test('a header of any other form makes the request anonymous', async t => {
    const { user, forged } = await start(t)
    const [header, payload, signature] = parts(user.token)
    const none = encode(JSON.stringify({ ...forged.header, alg: 'none' }))
    await anonymous(t, {
      'alg none, no signature': `${none}.${payload}.`,
      'alg none, two parts': `${none}.${payload}`,
      'alg none, the old signature': `${none}.${payload}.${signature}`,
      'alg none, signed': forged.withHeader({ alg: 'none' }),
      'alg HS384': forged.withHeader({ alg: 'HS384' }, hmac(JWT_SECRET, 'sha384')),
      'alg HS512': forged.withHeader({ alg: 'HS512' }, hmac(JWT_SECRET, 'sha512')),
      ...Object.fromEntries(
        ['HS256', 'HS384', 'EdDSA', 'Ed25519', 'ES256', 'ES384', 'ES256K', 'RS256', 'PS256']
          .filter(alg => alg !== signer.algorithm)
          .map(alg => [`alg ${alg} over another signature`, forged.withHeader({ alg })]),
      ),
      'alg in lower case': forged.withHeader({ alg: signer.algorithm.toLowerCase() }),
      'alg missing': forged.withHeader({ alg: undefined }),
      'typ missing': forged.withHeader({ typ: undefined }),
      'typ JWT': forged.withHeader({ typ: 'JWT' }),
      'typ empty': forged.withHeader({ typ: '' }),
      'typ a number': forged.withHeader({ typ: 1 }),
      'kid missing': forged.withHeader({ kid: undefined }),
      'kid unknown': forged.withHeader({ kid: 'another' }),
      'kid empty': forged.withHeader({ kid: '' }),
      'kid an array': forged.withHeader({ kid: [forged.header.kid] }),
      'kid __proto__': forged.withHeader({ kid: '__proto__' }),
      jku: forged.withHeader({ jku: 'https://attacker.example/jwks.json' }),
      jwk: forged.withHeader({ jwk: signer.publicKey?.export({ format: 'jwk' }) ?? { kty: 'oct', k: '' } }),
      x5c: forged.withHeader({ x5c: ['MIIB'] }),
      x5u: forged.withHeader({ x5u: 'https://attacker.example/certificate' }),
      'crit an array': forged.withHeader({ crit: ['exp'] }),
      'crit an empty array': forged.withHeader({ crit: [] }),
      'crit false': forged.withHeader({ crit: false }),
      'crit null': forged.withHeader({ crit: null }),
      'header null': forged.withHeaderText('null'),
      'header an array': forged.withHeaderText('[]'),
      'header a string': forged.withHeaderText('"HS256"'),
      'header empty': forged.withHeaderText(''),
      'header cut': forged.withHeaderText(`{"alg":"${signer.algorithm}"`),
      'header missing': `.${payload}.${signature}`,
      'header of another token': `${encode(JSON.stringify({ alg: signer.algorithm }))}.${payload}.${signature}`,
      'payload missing': `${header}..${signature}`,
    })
  })

  t.test('unexpected claims make the request anonymous', async t => {
    const { user, forged } = await start(t)
    const otherUser = await signUp(app)
    const theirs = forgery(otherUser.token).payload
    const now = Math.floor(Date.now() / 1_000)
    const exp = Number(forged.payload.exp)
    const variants: Record<string, string> = {
      "sub another user's": forged.withClaims({ sub: otherUser.id }),
      "sid of another user's session": forged.withClaims({ sid: theirs.sid }),
      'sid unknown': forged.withClaims({ sid: user.id }),
      'iat an hour ahead': forged.withClaims({ iat: now + 3_600 }),
      'iat a second late': forged.withClaims({ iat: Number(forged.payload.iat) + 1 }),
      'iat a second early': forged.withClaims({ iat: Number(forged.payload.iat) - 1 }),
      'nbf an hour ahead': forged.withClaims({ nbf: now + 3_600 }),
      'exp past': forged.withClaims({ exp: now - 1 }),
      'exp a fraction': forged.withExpText(`${exp}.5`),
    }
    const notStrings = [1, 0, [user.id], [forged.payload.sid], '', undefined, null, true, {}]
    for (const name of ['sub', 'sid', 'iss', 'aud']) {
      for (const value of notStrings) {
        // The issuer of an asymmetric token is any string: a change of PUBLIC_URL ends no session.
        if (name === 'iss' && value === '' && signer.algorithm !== 'HS256') continue
        variants[`${name} ${JSON.stringify(value)}`] = forged.withClaims({ [name]: value })
      }
    }
    for (const name of ['iss', 'aud']) {
      if (name === 'aud' || signer.algorithm === 'HS256')
        variants[`${name} another`] = forged.withClaims({ [name]: 'another' })
      variants[`${name} an array`] = forged.withClaims({ [name]: [forged.payload[name]] })
    }
    for (const name of ['iat', 'exp']) {
      for (const value of [undefined, null, true, '', `${exp}`, [exp], {}, -1]) {
        variants[`${name} ${JSON.stringify(value)}`] = forged.withClaims({ [name]: value })
      }
    }
    for (const text of [
      '1e400',
      '-1e400',
      '-1e308',
      '1e308',
      '-0.5',
      'NaN',
      '"NaN"',
      '"Infinity"',
      'Infinity',
    ]) {
      variants[`exp ${text}`] = forged.withExpText(text)
    }
    await anonymous(t, variants)
  })

  t.test('a payload that is not an object makes the request anonymous', async t => {
    const { forged } = await start(t)
    const texts = ['', 'null', 'true', '1', '"sub"', '[]', '{', '{}', 'not JSON', '{"sub":', '[{"sub":"x"}]']
    const variants = Object.fromEntries(texts.map(text => [`payload ${text}`, forged.withPayload(text)]))
    variants['payload not UTF-8'] = forged.withPayload(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))
    variants['payload NUL'] = forged.withPayload(Buffer.alloc(64))
    await anonymous(t, variants)
  })

  t.test('only the canonical spelling of a signature verifies', async t => {
    const { forged } = await start(t)
    const token = forged.withClaims({})
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    // 32 bytes leave two bits of the last character unused, 64 leave four.
    const unused = signer.algorithm === 'HS256' ? 4 : 16
    const bits = alphabet.indexOf(token.slice(-1)) & -unused
    const spellings = Array.from(
      { length: unused },
      (_, spare) => `${token.slice(0, -1)}${alphabet[bits + spare]}`,
    )
    const statuses: number[] = []
    for (const spelling of spellings) {
      statuses.push((await app.inject({ url: '/account', headers: bearer(spelling) })).statusCode)
    }
    t.strictSame(
      statuses,
      spellings.map(spelling => (spelling === token ? 200 : 401)),
    )
    t.equal(statuses.filter(status => status === 200).length, 1)
  })

  t.test('text that is not a token makes the request anonymous', async t => {
    const { user, forged } = await start(t)
    let token = user.token
    while (!/[-_]/.test(parts(token)[2])) token = (await signIn(app, user.email)).json().accessToken
    const [header, payload, signature] = parts(token)
    const flipped = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
    await anonymous(t, {
      'padding =': `${token}=`,
      'padding ==': `${token}==`,
      'padding of every part': `${header}=.${payload}=.${signature}=`,
      'standard alphabet': `${header}.${payload}.${signature.replaceAll('-', '+').replaceAll('_', '/')}`,
      'a dot behind': `${token}.`,
      'a dot before': `.${token}`,
      'a part too many': `${token}.${signature}`,
      'two dots': `${header}..${payload}.${signature}`,
      'dots alone': '..',
      'one dot': '.',
      'one part': header,
      'two parts': `${header}.${payload}`,
      'no signature': `${header}.${payload}.`,
      'a signature cut': token.slice(0, -1),
      'a signature longer': `${token}A`,
      'another signature': `${header}.${payload}.${flipped}`,
      'a space inside': `${header}. ${payload}.${signature}`,
      'a tab inside': `${header}.\t${payload}.${signature}`,
      'a space in the signature': `${header}.${payload}.${signature.slice(0, 20)} ${signature.slice(20)}`,
      'the token twice': `${token} ${token}`,
      'text before': `garbage ${token}`,
      'text behind it': `${token} garbage`,
      'a comma behind': `${token},`,
      'quotes around': `"${token}"`,
      'another secret': forged.signedBy(hmac('x'.repeat(48))),
      'an empty secret': forged.signedBy(hmac('')),
      'a part of the secret': forged.signedBy(hmac(JWT_SECRET.slice(0, 32))),
      'another Ed25519 key': forged.signedBy(keySigner('EdDSA').sign),
      'another P-256 key': forged.signedBy(keySigner('ES256').sign),
      'a signature of zeros': forged.signedBy(() => Buffer.alloc(signer.sign('').length)),
      'a signature of ones': forged.signedBy(() => Buffer.alloc(signer.sign('').length, 0xff)),
      'a DER signature': forged.signedBy(text =>
        Buffer.concat([Buffer.from([0x30, 0x44]), signer.sign(text)]),
      ),
      '100 KB of one letter': 'a'.repeat(100_000),
      '100 KB of dots': '.'.repeat(100_000),
      '100 KB of payload': `${header}.${'e'.repeat(100_000)}.${signature}`,
      '100 KB of signature': `${header}.${payload}.${'A'.repeat(100_000)}`,
      '100 KB, signed': forged.withClaims({ pad: 'x'.repeat(100_000) }),
      'latin-1': `${header}.${payload}.\u00ff${signature}`,
      'percent signs': encodeURIComponent('%').repeat(10),
    })
    t.equal(
      (await app.inject({ url: '/account', headers: bearer(token) })).statusCode,
      200,
      'it still verifies',
    )
  })

  const { publicKey } = signer
  if (publicKey === null) return

  t.test('a token with the public key as its secret does not verify', async t => {
    const { forged } = await start(t)
    const spki = publicKey.export({ type: 'spki', format: 'der' })
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const jwk = publicKey.export({ format: 'jwk' })
    const [published] = (await app.inject('/.well-known/jwks.json')).json().keys
    const raw = Buffer.concat([jwk.x ?? '', jwk.y ?? ''].map(part => Buffer.from(part, 'base64url')))
    const secrets: Record<string, string | Buffer> = {
      PEM: pem,
      'PEM without the last line break': pem.trim(),
      'PEM with escaped line breaks': pem.replaceAll('\n', '\\n'),
      'PEM without its lines': spki.toString('base64'),
      DER: spki,
      JWK: JSON.stringify(jwk),
      'the published JWK': JSON.stringify(published),
      'the published set': JSON.stringify({ keys: [published] }),
      'the bytes of the key': raw,
      'an uncompressed point': Buffer.concat([Buffer.from([4]), raw]),
      'x as text': jwk.x ?? '',
      'the key id': published.kid,
      'an empty secret': '',
    }
    const ids = { 'its key id': published.kid, 'no key id': undefined, 'an id of a secret': 'AAAAAAAA' }
    const variants = Object.entries(secrets).flatMap(([secretName, secret]) => [
      ...Object.entries(ids).map(([idName, kid]) => [
        `${secretName}, ${idName}`,
        forged.withHeader({ alg: 'HS256', kid }, hmac(secret)),
      ]),
      [`${secretName}, unchanged header`, forged.signedBy(hmac(secret))],
      [`${secretName}, HS512, unchanged header`, forged.signedBy(hmac(secret, 'sha512'))],
    ])
    await anonymous(t, Object.fromEntries(variants))
  })

  t.test('the second valid form of a signature does not verify', async t => {
    const { user, forged } = await start(t)
    const [header, payload, signature] = parts(user.token)
    const bytes = Buffer.from(signature, 'base64url')
    const scalar = Buffer.from(bytes.subarray(32))
    // Ed25519 writes the scalar in little-endian order (RFC 8032 §5.1.2).
    const plusOrder = toBytes(toNumber(Buffer.from(scalar).reverse()) + ORDERS.EdDSA).reverse()
    const second =
      signer.algorithm === 'ES256' ? otherSignature(bytes) : Buffer.concat([bytes.subarray(0, 32), plusOrder])
    await anonymous(t, {
      'of a token of the service': `${header}.${payload}.${encode(second)}`,
      ...(signer.algorithm === 'ES256' && {
        'of a token signed anew': forged.signedBy(text => otherSignature(signer.sign(text))),
      }),
    })
  })

  t.test('tokens keep working after a change of PUBLIC_URL', async t => {
    const { user, forged } = await start(t)
    for (const iss of ['https://accounts.example.com', 'gatehouse', '']) {
      const response = await app.inject({ url: '/account', headers: bearer(forged.withClaims({ iss })) })
      t.equal(response.json().id, user.id, iss)
    }
  })
}

for (const signer of [secretSigner(), keySigner('EdDSA'), keySigner('ES256')])
  t.test(signer.algorithm, t => runWith(t, signer))
