/** Sign-in with a passkey (docs/design.md, "Passkeys"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { call } from '../support/account-routes.ts'
import { allEvents, deleteUser } from '../support/admin-routes.ts'
import { accountStatus, bearer, manualClock, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, errorsOf, globalErrorOf } from '../support/error-response.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox } from '../support/mailbox.ts'
import {
  creationOptions,
  ENV,
  listPasskeys,
  postSignIn,
  register,
  removePasskey,
  requestOptions,
  signInWith,
} from '../support/passkeys.ts'
import { isPrivateJson } from '../support/response-shapes.ts'
import { cbor, FLAGS, SoftwareAuthenticator } from '../support/software-authenticator.ts'

const WRONG = { credential: ['could not be verified'] }

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The letter with another last bit. */
const nextLetter = (letter: string): string => BASE64URL[BASE64URL.indexOf(letter) ^ 1] ?? ''

const outcomes = (app: FastifyInstance) => ({ ...app.services.signIns.outcomes.passkey?.values })

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const env = { ...ENV, DATABASE_URL }
  const app = await build(t, { clock: clock.now, env })

  t.test('the options name no user, and are alike for everybody', async t => {
    const response = await requestOptions(app)
    isPrivateJson(t, response, 200)
    const { challenge, ...options } = response.json()
    t.equal(Buffer.from(challenge, 'base64url').length, 32)
    t.same(options, { rpId: 'localhost', timeout: 300_000, userVerification: 'required' })
  })

  t.test('a passkey signs in without a user name', async t => {
    const user = await signUp(app, { firstName: 'Ann' })
    const { authenticator, id } = await register(app, user.token)
    clock.advance(86_400_000)
    const before = outcomes(app)
    const response = await signInWith(app, authenticator)
    isPrivateJson(t, response, 200)
    t.match(response.headers['set-cookie'], /^ACCESS_TOKEN=.*HttpOnly/)
    const { accessToken, user: account, ...others } = response.json()
    t.same(Object.keys(others), ['expiresAt'])
    t.match(account, { id: user.id, email: user.email, firstName: 'Ann' })
    t.equal(await accountStatus(app, accessToken), 200)
    t.equal(outcomes(app).succeeded, (before.succeeded ?? 0) + 1)
    t.match(await listPasskeys(app, accessToken), [{ id, lastUsedAt: new Date(clock.now()).toISOString() }])
    const sessions = (await call(app, 'GET', '/account/sessions', undefined, bearer(accessToken))).json()
    const session = sessions.results.find(({ current }: { current: boolean }) => current)
    const [event] = await allEvents(app, { userId: user.id, type: 'user.signed-in' })
    t.match(event, { actor: { type: 'user', id: user.id }, details: { session: session.id, passkey: id } })
    t.equal((await creationOptions(app, accessToken)).statusCode, 200, 'it has proved the identity')
  })

  t.test('each of two passkeys signs in', async t => {
    const user = await signUp(app)
    const [one, two] = [await register(app, user.token), await register(app, user.token, { counter: null })]
    for (const { authenticator } of [one, two, two, one])
      t.equal((await signInWith(app, authenticator)).json().user?.id, user.id)
  })

  t.test('whatever is wrong is 401 with one body', async t => {
    const [user, other] = [await signUp(app), await signUp(app)]
    const { authenticator } = await register(app, user.token)
    const stranger = new SoftwareAuthenticator()
    stranger.create((await creationOptions(app, other.token)).json())
    const handleOf = (id: string) => Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
    const before = outcomes(app)
    const flags = FLAGS.up | FLAGS.uv
    const wrong: [string, object][] = [
      ['another origin', { origin: 'https://evil.example' }],
      ['an origin below the host on another port', { origin: 'http://localhost:3001' }],
      ['another RP id', { rpId: 'evil.example' }],
      ['a registration', { type: 'webauthn.create' }],
      ['in a frame of another site', { crossOrigin: true }],
      ['an unknown challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
      ['an empty challenge', { challenge: '' }],
      ['the user was not verified', { flags: flags & ~FLAGS.uv }],
      ['the user was not present', { flags: flags & ~FLAGS.up }],
      ['of another user', { userHandle: handleOf(other.id) }],
      ['of no user', { userHandle: null }],
      ['an empty user', { userHandle: '' }],
    ]
    const refused = wrong.map(async ([title, changes]) => {
      const response = await signInWith(app, authenticator, changes)
      t.same(errorsAt(t, response, 401, ['credential'], title), WRONG, title)
      t.equal(response.headers['set-cookie'], undefined)
    })
    await Promise.all(refused)
    t.same(errorsOf(t, await signInWith(app, stranger), 401), WRONG, 'an unknown passkey')
    const impostor = authenticator.get((await requestOptions(app)).json())
    const { signature } = stranger.get((await requestOptions(app)).json()).response
    const forged = { ...impostor, response: { ...impostor.response, signature } }
    t.same(errorsOf(t, await postSignIn(app, forged), 401), WRONG, 'a signature of another key')
    const renamed = { ...authenticator.get((await requestOptions(app)).json()), rawId: 'AAAA' }
    t.same(errorsOf(t, await postSignIn(app, renamed), 401), WRONG, 'two ids')
    const { challenge } = (await creationOptions(app, user.token)).json()
    const swapped = await signInWith(app, authenticator, { challenge })
    t.same(errorsOf(t, swapped, 401), WRONG, 'a challenge for a registration')
    const counted = (outcomes(app).wrong_credentials ?? 0) - (before.wrong_credentials ?? 0)
    t.equal(counted, wrong.length + 4)
    t.equal((await signInWith(app, authenticator)).statusCode, 200, 'it still works')
  })

  t.test('a signature has one form: nothing is in front of it, in it or behind it', async t => {
    const user = await signUp(app)
    for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const) {
      const { authenticator } = await register(app, user.token, { algorithm })
      const forms: [string, (signature: Buffer) => readonly number[]][] = [
        ['a byte behind', signature => [...signature, 0]],
        ['a byte in front', signature => [0, ...signature]],
        ['the signature twice', signature => [...signature, ...signature]],
        ['without its last byte', signature => [...signature.subarray(0, -1)]],
      ]
      // DER: a sequence of the integers r and s.
      if (algorithm === 'ES256')
        forms.push(
          [
            'a byte at the end of the sequence',
            ([tag = 0, length = 0, ...all]) => [tag, length + 1, ...all, 0],
          ],
          ['a third integer', ([tag = 0, length = 0, ...all]) => [tag, length + 3, ...all, 2, 1, 1]],
          ['a long length', ([tag = 0, ...others]) => [tag, 0x81, ...others]],
          [
            'a zero in front of r',
            ([tag = 0, length = 0, integer = 0, size = 0, ...all]) => [
              ...[tag, length + 1, integer, size + 1],
              ...[0, ...all],
            ],
          ],
        )
      for (const [title, change] of forms) {
        const used = authenticator.get((await requestOptions(app)).json())
        const signature = Buffer.from(change(Buffer.from(used.response.signature, 'base64url')))
        const response = { ...used.response, signature: signature.toString('base64url') }
        const refused = await postSignIn(app, { ...used, response })
        t.same(errorsOf(t, refused, 401), WRONG, `${algorithm}: ${title}`)
      }
      t.equal((await signInWith(app, authenticator)).statusCode, 200)
    }
  })

  t.test('bytes behind the authenticator data are refused, also if they are signed', async t => {
    const user = await signUp(app)
    const { authenticator } = await register(app, user.token)
    const refused = await signInWith(app, authenticator, { behind: Buffer.of(0) })
    t.same(errorsOf(t, refused, 401), WRONG)
    const extensions = { flags: FLAGS.up | FLAGS.uv | FLAGS.ed, behind: cbor(new Map([['x', true]])) }
    t.equal((await signInWith(app, authenticator, extensions)).statusCode, 200, 'but for extensions')
    const behind = Buffer.concat([extensions.behind, Buffer.of(0xa0)])
    t.same(errorsOf(t, await signInWith(app, authenticator, { ...extensions, behind }), 401), WRONG)
  })

  t.test('bytes have one form in base64url', async t => {
    const user = await signUp(app)
    const { authenticator } = await register(app, user.token)
    const used = authenticator.get((await requestOptions(app)).json())
    const fields = ['clientDataJSON', 'authenticatorData', 'signature', 'userHandle'] as const
    for (const field of fields) {
      const text = used.response[field] ?? ''
      const last = text.at(-1) ?? ''
      // The last character of what is no multiple of three bytes has bits that mean nothing.
      const changed = text.length % 4 === 0 ? [] : [text.slice(0, -1) + nextLetter(last)]
      for (const other of [...changed, `${text}=`, `${text}==`, `${text} `, `${text}\n`, `+${text}`]) {
        const response = { ...used.response, [field]: other }
        const refused = await postSignIn(app, { ...used, response })
        errorsAt(t, refused, 400, [`credential.response.${field}`], `${field} ${other}`)
      }
    }
    const otherId = used.id.slice(0, -1) + nextLetter(used.id.at(-1) ?? '')
    const renamed = await postSignIn(app, { ...used, id: otherId, rawId: otherId })
    errorsAt(t, renamed, 400, ['credential.id', 'credential.rawId'])
    t.equal((await postSignIn(app, used)).statusCode, 200, 'the challenge was not used up')
  })

  t.test('malformed input is 400 under the names of its fields', async t => {
    const authenticator = new SoftwareAuthenticator()
    const credential = authenticator.get((await requestOptions(app)).json())
    const { response } = credential
    const cases: [credential: object | string | undefined, field: string][] = [
      [undefined, 'credential'],
      ['x', 'credential'],
      [{ ...credential, id: 'a b' }, 'credential.id'],
      [{ ...credential, id: 'x'.repeat(1_365) }, 'credential.id'],
      [{ ...credential, type: 'x' }, 'credential.type'],
      [{ ...credential, response: [] }, 'credential.response'],
      [{ ...credential, response: { ...response, signature: '+/' } }, 'credential.response.signature'],
      [
        { ...credential, response: { ...response, authenticatorData: 'x'.repeat(4_097) } },
        'credential.response.authenticatorData',
      ],
      [{ ...credential, response: { ...response, userHandle: 7 } }, 'credential.response.userHandle'],
      [
        { ...credential, response: { ...response, clientDataJSON: '' } },
        'credential.response.clientDataJSON',
      ],
    ]
    for (const [given, field] of cases) {
      const refused = await call(app, 'POST', '/account/sign-in/passkey', { credential: given })
      errorsAt(t, refused, 400, [field], field)
    }
  })

  t.test('a counter that has not grown is refused and recorded: another device has the key', async t => {
    const user = await signUp(app)
    const { authenticator, id } = await register(app, user.token, { counter: 5 })
    t.equal((await signInWith(app, authenticator, { counter: 9 })).statusCode, 200)
    for (const counter of [9, 8, 1, 0])
      t.same(errorsOf(t, await signInWith(app, authenticator, { counter }), 401), WRONG, String(counter))
    const events = await allEvents(app, { userId: user.id, type: 'passkey.counter-regressed' })
    t.equal(events.length, 4)
    for (const event of events) t.match(event, { actor: { type: 'anonymous' }, details: { passkey: id } })
    t.equal((await signInWith(app, authenticator, { counter: 10 })).statusCode, 200)
    t.equal((await signInWith(app, authenticator, { counter: 2 ** 32 - 1 })).statusCode, 200)
    t.equal((await signInWith(app, authenticator, { counter: 11 })).statusCode, 401)
  })

  t.test('a passkey that does not count signs in again and again, until it counts', async t => {
    const { authenticator } = await register(app, (await signUp(app)).token, { counter: null })
    for (const counter of [0, 0, 1])
      t.equal((await signInWith(app, authenticator, { counter })).statusCode, 200)
    t.equal((await signInWith(app, authenticator, { counter: 0 })).statusCode, 401)
  })

  t.test('of 20 concurrent signatures with one counter, one signs in', async t => {
    const user = await signUp(app)
    const { authenticator } = await register(app, user.token)
    const options = await Promise.all(Array.from({ length: 20 }, () => requestOptions(app)))
    const signed = options.map(response => authenticator.get(response.json(), { counter: 7 }))
    const statuses = (await Promise.all(signed.map(credential => postSignIn(app, credential)))).map(
      ({ statusCode }) => statusCode,
    )
    t.same(statuses.toSorted(), [200, ...Array.from({ length: 19 }, () => 401)])
  })

  t.test('a user who is disabled or removed does not sign in', async t => {
    const user = await signUp(app)
    const { authenticator } = await register(app, user.token)
    await updateUser(app, user.id, { disabled: true })
    t.equal(globalErrorOf(t, await signInWith(app, authenticator), 403), 'This account is disabled')
    await updateUser(app, user.id, { disabled: false })
    t.equal((await signInWith(app, authenticator)).statusCode, 200)
    await deleteUser(app, user.id)
    t.same(errorsOf(t, await signInWith(app, authenticator), 401), WRONG)
  })

  t.test('the state of the backup is that of the last sign-in', async t => {
    const user = await signUp(app)
    const { authenticator } = await register(app, user.token)
    const flags = FLAGS.up | FLAGS.uv | FLAGS.be | FLAGS.bs
    t.equal((await signInWith(app, authenticator, { flags })).statusCode, 200)
    t.match(await listPasskeys(app, user.token), [{ backedUp: true }])
  })

  t.test('another instance knows the challenge and the passkey', async t => {
    const other = await build(t, { clock: clock.now, env })
    const user = await signUp(app)
    const { authenticator, id } = await register(app, user.token)
    const options = (await requestOptions(app)).json()
    t.equal((await postSignIn(other, authenticator.get(options))).statusCode, 200)
    t.equal((await removePasskey(app, user.token, id)).statusCode, 204)
    t.equal((await signInWith(other, authenticator)).statusCode, 401)
  })

  t.test('a verified e-mail is needed where passwords need it', async t => {
    const strict = await build(t, { env: { ...env, REQUIRE_EMAIL_VERIFICATION: 'true' } })
    const user = await signUp(app)
    const { authenticator } = await register(app, user.token)
    t.match(globalErrorOf(t, await signInWith(strict, authenticator), 403), /^The e-mail is not verified/)
    await updateUser(app, user.id, { emailVerified: true })
    t.equal((await signInWith(strict, authenticator)).statusCode, 200)
  })

  t.test('both routes have the limit of sign-ins', async t => {
    const limited = await build(t, {
      env: { ...ENV, DATABASE_URL: await newDatabase(t), RATE_LIMIT: 'on' },
      rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ 'sign-in': 4 }) },
    })
    const { authenticator } = await register(limited, (await signUp(limited)).token)
    t.equal((await signInWith(limited, authenticator)).statusCode, 200)
    const options = (await requestOptions(limited)).json()
    t.equal((await postSignIn(limited, authenticator.get(options))).statusCode, 200)
    globalErrorOf(t, await requestOptions(limited), 429)
    globalErrorOf(t, await postSignIn(limited, authenticator.get(options)), 429)
  })

  // The last test: it closes the app.
  t.test('a sign-in sends no mail', async t => {
    const user = await signUp(app)
    const { authenticator } = await register(app, user.token)
    t.equal((await signInWith(app, authenticator)).statusCode, 200)
    t.same((await mailbox(app).final(user.email)).sort(), [
      'A passkey has been added to your account',
      'Confirm your e-mail address',
    ])
  })
})
