import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { allEvents, eventTypes, factorsOf, impersonate, removeFactors } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import { addTotp, ENCRYPTION_KEY } from '../support/authenticator-apps.ts'
import { accountStatus, bearer, manualClock, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import {
  creationOptions,
  ENV,
  listPasskeys,
  postPasskey,
  register,
  requestOptions,
  signInWith,
} from '../support/passkeys.ts'
import { race, rounds } from '../support/races.ts'
import { isPrivateJson } from '../support/response-shapes.ts'
import { type cbor, FLAGS, SoftwareAuthenticator } from '../support/software-authenticator.ts'

const MINUTE = 60_000
const MAX_PASSKEYS = 20

/** RFC 9053 §7. */
const cose = (...parameters: (readonly [name: number, value: number | Uint8Array])[]) => new Map(parameters)
const es256 = (x: Uint8Array, y: Uint8Array) => cose([1, 2], [3, -7], [-1, 1], [-2, x], [-3, y])
const rs256 = (bits: number) =>
  cose([1, 3], [3, -257], [-1, Buffer.alloc(bits / 8, 0xff)], [-2, Buffer.of(3)])

const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
  format: 'jwk',
})
const POINT = [Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')] as const
const WRONG = { credential: ['could not be verified: begin again'] }

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const env = { ...ENV, DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY, PRODUCT_NAME: 'Gate & house' }
  const options = { clock: clock.now, env }
  const app = await build(t, options)
  const begin = async (token: string) => (await creationOptions(app, token)).json()

  t.test('the options name user and service, and ask for a discoverable, verified passkey', async t => {
    const user = await signUp(app, { firstName: 'Ann', lastName: 'Lee' })
    const response = await creationOptions(app, user.token)
    isPrivateJson(t, response, 200)
    const { challenge, ...options } = response.json()
    t.equal(Buffer.from(challenge, 'base64url').length, 32)
    t.same(options, {
      rp: { id: 'localhost', name: 'Gate & house' },
      user: {
        id: Buffer.from(user.id.replaceAll('-', ''), 'hex').toString('base64url'),
        name: user.email,
        displayName: 'Ann Lee',
      },
      pubKeyCredParams: [-8, -7, -257].map(alg => ({ type: 'public-key', alg })),
      timeout: 5 * MINUTE,
      excludeCredentials: [],
      authenticatorSelection: {
        residentKey: 'required',
        requireResidentKey: true,
        userVerification: 'required',
      },
      attestation: 'none',
      extensions: { credProps: true },
    })
    t.not((await begin(user.token)).challenge, challenge)
    t.equal((await begin((await signUp(app)).token)).user.displayName.includes('@'), true, 'without a name')
  })

  t.test('a passkey is added, listed, recorded and mailed', async t => {
    const user = await signUp(app)
    const authenticator = new SoftwareAuthenticator()
    const credential = authenticator.create(await begin(user.token))
    const response = await postPasskey(app, user.token, { credential, name: '  Work laptop ' })
    isPrivateJson(t, response, 201)
    const { id, ...passkey } = response.json()
    t.same(passkey, {
      name: 'Work laptop',
      transports: ['internal', 'hybrid'],
      backedUp: false,
      createdAt: new Date(clock.now()).toISOString(),
      lastUsedAt: null,
    })
    const listed = await call(app, 'GET', '/account/passkeys', undefined, bearer(user.token))
    isPrivateJson(t, listed, 200)
    t.same(listed.json(), { results: [{ id, ...passkey }] })
    t.same(await factorsOf(app, user.id), ['passkey'])
    const [event] = await allEvents(app, { userId: user.id, type: 'passkey.added' })
    t.match(event, { actor: { type: 'user', id: user.id }, ip: '127.0.0.1', details: { passkey: id } })
    const [mail] = await mailbox(app).to(user.email, 'passkeyAdded')
    t.notMatch(JSON.stringify(mail), 'Work laptop', 'a thief of the session must not write mails')

    const { excludeCredentials } = await begin(user.token)
    t.same(excludeCredentials, [
      { id: credential.id, type: 'public-key', transports: ['internal', 'hybrid'] },
    ])
    t.same(await listPasskeys(app, (await signUp(app)).token), [], 'nobody else sees it')
  })

  t.test('ES256, EdDSA and RS256; two passkeys are listed newest first', async t => {
    const user = await signUp(app)
    for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const) {
      const { authenticator } = await register(app, user.token, { algorithm, name: algorithm })
      clock.advance(1_000)
      t.equal((await signInWith(app, authenticator)).statusCode, 200, algorithm)
    }
    t.same(
      (await listPasskeys(app, user.token)).map(({ name }) => name),
      ['RS256', 'EdDSA', 'ES256'],
    )
  })

  t.test('nothing is behind an attestation, and it is in canonical CBOR', async t => {
    const user = await signUp(app)
    const forms: [string, (attestation: Buffer) => Buffer][] = [
      ['a byte behind', attestation => Buffer.concat([attestation, Buffer.of(0)])],
      ['twice', attestation => Buffer.concat([attestation, attestation])],
      ['a long length of the map', ([, ...all]) => Buffer.of(0xb8, 3, ...all)],
      ['a map of four', ([, ...all]) => Buffer.of(0xa4, ...all, 0x61, 0x78, 0)],
    ]
    for (const [title, change] of forms) {
      const made = new SoftwareAuthenticator().create(await begin(user.token))
      const attestationObject = change(Buffer.from(made.response.attestationObject, 'base64url'))
      const response = { ...made.response, attestationObject: attestationObject.toString('base64url') }
      const added = await postPasskey(app, user.token, { credential: { ...made, response } })
      t.equal(added.statusCode, title === 'a map of four' ? 201 : 400, title)
    }
  })

  t.test('an attestation is not read, so its certificates cause no requests', async t => {
    const user = await signUp(app)
    const attStmt = new Map<string, Parameters<typeof cbor>[0]>([
      ['alg', -7],
      ['sig', Buffer.from('no signature')],
      ['x5c', [Buffer.from('no certificate')]],
    ])
    const authenticator = new SoftwareAuthenticator()
    for (const fmt of ['packed', 'tpm', 'android-key', 'apple', 'of the future']) {
      const credential = new SoftwareAuthenticator().create(await begin(user.token), { fmt, attStmt })
      t.equal((await postPasskey(app, user.token, { credential })).statusCode, 201, fmt)
    }
    const credential = authenticator.create(await begin(user.token), { fmt: 'packed', attStmt })
    t.equal((await postPasskey(app, user.token, { credential })).statusCode, 201)
    t.equal((await signInWith(app, authenticator)).statusCode, 200)
  })

  t.test('a backed up passkey says so', async t => {
    const user = await signUp(app)
    const flags = FLAGS.up | FLAGS.uv | FLAGS.at | FLAGS.be | FLAGS.bs
    const credential = new SoftwareAuthenticator().create(await begin(user.token), { flags })
    t.match((await postPasskey(app, user.token, { credential })).json(), { backedUp: true, name: null })
  })

  t.test('whatever is wrong with a response is 400, and nothing is added', async t => {
    const user = await signUp(app)
    const other = await signUp(app)
    const authenticator = new SoftwareAuthenticator()
    const flags = FLAGS.up | FLAGS.uv | FLAGS.at
    const wrong: [string, object][] = [
      ['another origin', { origin: 'https://evil.example' }],
      ['another port', { origin: 'http://localhost:3001' }],
      ['another RP id', { rpId: 'evil.example' }],
      ['a sign-in', { type: 'webauthn.get' }],
      ['in a frame of another site', { crossOrigin: true }],
      ['an unknown challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
      ['the user was not verified', { flags: flags & ~FLAGS.uv }],
      ['the user was not present', { flags: flags & ~FLAGS.up }],
      ['no credential', { flags: flags & ~FLAGS.at }],
      ['an impossible backup state', { flags: flags | FLAGS.bs }],
      [
        'an algorithm that was not asked for',
        {
          publicKey: new Map([
            [1, 2],
            [3, -35],
            [-1, 2],
          ]),
        },
      ],
      ['no key', { publicKey: new Map() }],
      ['no map as key', { publicKey: [1, 2, 3] }],
      ['no point of the curve', { publicKey: es256(POINT[0], Buffer.alloc(32)) }],
      ['more than a public key', { publicKey: es256(...POINT).set(-4, Buffer.alloc(32)) }],
      ['a short RSA key', { publicKey: rs256(1_024) }],
      ['a very long RSA key', { publicKey: rs256(8_192) }],
      ['another credential', { credentialId: Buffer.alloc(16) }],
    ]
    for (const [title, changes] of wrong) {
      const credential = authenticator.create(await begin(user.token), changes)
      const refused = await postPasskey(app, user.token, { credential })
      t.same(errorsAt(t, refused, 400, ['credential'], title), WRONG, title)
    }
    const forSignIn = (await requestOptions(app)).json()
    const { challenge } = forSignIn
    const swapped = authenticator.create(await begin(user.token), { challenge })
    t.equal((await postPasskey(app, user.token, { credential: swapped })).statusCode, 400, 'of a sign-in')
    const foreign = authenticator.create(await begin(other.token))
    t.equal((await postPasskey(app, user.token, { credential: foreign })).statusCode, 400, 'of another user')
    t.equal(
      (await postPasskey(app, other.token, { credential: foreign })).statusCode,
      201,
      'which did not use up the challenge of the other',
    )
    const { accessToken } = (await signIn(app, user.email)).json()
    const ofSession = authenticator.create(await begin(accessToken))
    t.equal((await postPasskey(app, user.token, { credential: ofSession })).statusCode, 400, 'of a session')
    t.same(await listPasskeys(app, user.token), [])
    t.same(await factorsOf(app, user.id), [])
  })

  t.test('wrong fields are 400 under their names', async t => {
    const { token } = await signUp(app)
    const credential = new SoftwareAuthenticator().create(await begin(token))
    const { response } = credential
    const cases: [payload: object, field: string][] = [
      [{}, 'credential'],
      [{ credential: 'x' }, 'credential'],
      [{ credential, name: '' }, 'name'],
      [{ credential, name: 'a\nb' }, 'name'],
      [{ credential, other: 1 }, 'other'],
      [{ credential: { ...credential, id: 7 } }, 'credential.id'],
      [{ credential: { ...credential, id: 'no/base64url' } }, 'credential.id'],
      [{ credential: { ...credential, rawId: '' } }, 'credential.rawId'],
      [{ credential: { ...credential, type: 'password' } }, 'credential.type'],
      [{ credential: { ...credential, response: null } }, 'credential.response'],
      [
        { credential: { ...credential, response: { ...response, clientDataJSON: 'x'.repeat(4_097) } } },
        'credential.response.clientDataJSON',
      ],
      [
        { credential: { ...credential, response: { ...response, attestationObject: 'x'.repeat(8_193) } } },
        'credential.response.attestationObject',
      ],
      [
        { credential: { ...credential, response: { ...response, transports: ['a b'] } } },
        'credential.response.transports.0',
      ],
    ]
    for (const [payload, field] of cases)
      errorsAt(t, await postPasskey(app, token, payload), 400, [field], field)
    t.equal((await postPasskey(app, token, { credential })).statusCode, 201, 'they used up no challenge')
  })

  t.test('a credential is added once, to one user', async t => {
    const [user, other] = [await signUp(app), await signUp(app)]
    const { authenticator } = await register(app, user.token)
    for (const { token } of [user, other]) {
      const credential = authenticator.create(await begin(token))
      const refused = await postPasskey(app, token, { credential })
      t.same(errorsAt(t, refused, 409, ['credential']), { credential: ['is already a passkey'] })
    }
    t.same(await factorsOf(app, other.id), [], 'nothing of the refused one is stored')
  })

  t.test('F8: of 50 simultaneous passkeys on two instances 20 are added', async t => {
    const user = await signUp(app)
    const instances = [app, await build(t, options)]
    const begun = await Promise.all(Array.from({ length: 50 }, () => begin(user.token)))
    const added = await Promise.all(
      begun.map((creation, index) => {
        const credential = new SoftwareAuthenticator().create(creation)
        return postPasskey(instances[index % 2] ?? app, user.token, { credential })
      }),
    )
    const statuses = added.map(({ statusCode }) => statusCode)
    t.same(statuses.sort(), [...Array(MAX_PASSKEYS).fill(201), ...Array(30).fill(409)])
    t.equal((await listPasskeys(app, user.token)).length, MAX_PASSKEYS)
    const message = 'You have 20 passkeys: remove one first'
    t.equal(globalErrorOf(t, await creationOptions(app, user.token), 409), message)
  })

  t.test('options need a recent sign-in or the password; the other step its session', async t => {
    const user = await signUp(app)
    clock.advance(10 * MINUTE + 1)
    t.equal((await creationOptions(app, user.token)).statusCode, 403)
    const begun = await creationOptions(app, user.token, { password: PASSWORD })
    t.equal(begun.statusCode, 200)
    const credential = new SoftwareAuthenticator().create(begun.json())
    const { accessToken } = (await signIn(app, user.email)).json()
    await call(app, 'DELETE', '/account/sessions', undefined, bearer(accessToken))
    t.equal((await postPasskey(app, user.token, { credential })).statusCode, 401)
    t.equal((await postPasskey(app, accessToken, { credential })).statusCode, 400, 'not in another session')
    t.same(await listPasskeys(app, accessToken), [])
  })

  t.test('F6: the password alone adds no passkey to an account with an authenticator app', async t => {
    const user = await signUp(app)
    const { code } = await addTotp(app, user.token)
    clock.advance(10 * MINUTE + 1)
    globalErrorOf(t, await creationOptions(app, user.token), 403)
    for (const password of [PASSWORD, 'not the pass phrase']) {
      const field = password === PASSWORD ? 'code' : 'password'
      errorsAt(t, await creationOptions(app, user.token, { password }), 400, [field])
      const renewed = await call(app, 'POST', '/account/reauthenticate', { password }, bearer(user.token))
      errorsAt(t, renewed, 400, [field])
    }
    globalErrorOf(t, await creationOptions(app, user.token), 403, 'none of them was a proof')
    const other = await signUp(app)
    const signedInBefore: string = (await signIn(app, other.email)).json().accessToken
    await addTotp(app, other.token)
    t.equal((await creationOptions(app, other.token)).statusCode, 200, 'the session that has added the app')
    globalErrorOf(t, await creationOptions(app, signedInBefore), 403, 'a session from before the app')
    const third = await signUp(app)
    const withoutProof: string = (await signIn(app, third.email)).json().accessToken
    await addTotp(app, third.token)
    t.equal((await removeFactors(app, third.id)).statusCode, 204)
    const early = await creationOptions(app, withoutProof, { password: PASSWORD })
    const { accessToken } = (await signIn(app, third.email)).json()
    await addTotp(app, accessToken)
    const late = { credential: new SoftwareAuthenticator().create(early.json()) }
    errorsAt(
      t,
      await postPasskey(app, withoutProof, late),
      400,
      ['credential'],
      'options from before the app',
    )
    const begun = await creationOptions(app, user.token, { code: code() })
    const credential = new SoftwareAuthenticator().create(begun.json())
    t.equal((await postPasskey(app, user.token, { credential })).statusCode, 201)
  })

  t.test('100 races with the end of the session: an ended session adds no passkey', async t => {
    const wrong: string[] = []
    for (const round of rounds) {
      const user = await signUp(app)
      const credential = new SoftwareAuthenticator().create(await begin(user.token))
      const { accessToken } = (await signIn(app, user.email)).json()
      const end = () => call(app, 'DELETE', '/account/sessions', undefined, bearer(accessToken))
      const [added] = await race(round, () => postPasskey(app, user.token, { credential }), end)
      if (![201, 400, 401].includes(added.statusCode)) wrong.push(`${round}: ${added.statusCode}`)
      const types = await eventTypes(app, user.id, ['sessions.ended'])
      const order = types.filter(type => ['passkey.added', 'sessions.ended'].includes(type))
      const expected = added.statusCode === 201 ? ['passkey.added', 'sessions.ended'] : ['sessions.ended']
      if (order.join() !== expected.join()) wrong.push(`${round}: ${added.statusCode} ${order}`)
    }
    t.same(wrong, [])
  })

  t.test('impersonated sessions and API keys add no passkey', async t => {
    const user = await signUp(app)
    const acting: string = (await impersonate(app, user.id)).json().accessToken
    const key = (await createKey(app, user.token)).token
    const credential = new SoftwareAuthenticator().create(await begin(user.token))
    for (const token of [acting, key]) {
      globalErrorOf(t, await creationOptions(app, token), 403)
      globalErrorOf(t, await postPasskey(app, token, { credential }), 403)
    }
    t.same(await listPasskeys(app, user.token), [])
  })

  t.test('endOthers ends the other sessions', async t => {
    const user = await signUp(app)
    const other: string = (await signIn(app, user.email)).json().accessToken
    await register(app, user.token)
    t.equal(await accountStatus(app, other), 200)
    await register(app, user.token, { query: '?endOthers=true' })
    t.equal(await accountStatus(app, other), 401)
    t.equal(await accountStatus(app, user.token), 200)
    await updateUser(app, user.id, { disabled: true })
    t.equal((await creationOptions(app, user.token)).statusCode, 401)
  })
})
