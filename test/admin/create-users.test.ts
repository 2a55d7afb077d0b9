/** POST /admin/users (docs/design.md, "Account life cycle"). Deletion: delete-users.test.ts. */

import { hashSync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import t from 'tap'
import { newFields } from '#core/users/fields'
import { createUser, impersonate, postUser, UNKNOWN_ID } from '../support/admin-routes.ts'
import { asAdmin, bearer, freshEmail, manualClock, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import { ADMIN_USER, hasShape, isPrivateJson } from '../support/response-shapes.ts'
import { scryptPhc } from '../support/scrypt-phc.ts'

const HASHES: Record<string, string> = {
  bcrypt: bcrypt.hashSync(PASSWORD, 4),
  argon2id: hashSync(PASSWORD, { memoryCost: 64, timeCost: 1, parallelism: 1 }),
  scrypt: scryptPhc(PASSWORD, Buffer.from('salt of sixteen.'), 12, 8, 1),
}

/** Decomposed accents (NFD), as some keyboards send them. */
const DECOMPOSED = 'cre\u0300me bru\u0302le\u0301e 7'

/** Made with libxcrypt, Python's hashlib and OpenSSL. */
const DECOMPOSED_HASHES: Record<string, string> = {
  bcrypt: '$2b$04$CCCCCCCCCCCCCCCCCCCCC.A2D6OCpliW6V57WYn3zIs0.ly2QtUB.',
  scrypt: '$scrypt$ln=4,r=8,p=1$U29kaXVtQ2hsb3JpZGU$agl8rrYvNriDtaMWmews8HF74544HS1UBmuBHYeMpL0',
  argon2id: '$argon2id$v=19$m=64,t=1,p=1$U29kaXVtQ2hsb3JpZGU$Ms2DqEN2i89IWcE40aZlDFjh7cApoeBlnBw4qpmahEw',
  'argon2id, as strong as ours':
    '$argon2id$v=19$m=19456,t=2,p=1$U29kaXVtQ2hsb3JpZGU$9o2L2SJ4jHNA323NmQOq2ionTmTaWmwg5mPyOWYADQo',
}

/** Made with libxcrypt. */
const BCRYPT_OF = {
  a: '$2b$04$CCCCCCCCCCCCCCCCCCCCC.f/Fm9DOYGp2ai9rjxvG4QHlhtDCuDuu',
  longer: '$2b$04$CCCCCCCCCCCCCCCCCCCCC.ug0A3dTXhy5U.dFjx/qguZ8I4CB77BC',
}

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const iso = () => new Date(clock.now()).toISOString()
  const app = await build(t, { clock: clock.now, realHashing: true })
  const mails = mailbox(app)
  const statuses = (responses: { statusCode: number }[]) =>
    responses.map(({ statusCode }) => statusCode).sort()
  const get = (id: string) => app.inject({ url: `/admin/users/${id}`, headers: asAdmin })
  const post = (payload: Record<string, unknown>) => postUser(app, payload)
  const send = (url: string, payload: Record<string, unknown>) => app.inject({ method: 'POST', url, payload })

  t.test('POST /admin/users returns 201, Location, AdminUser and ETag, and opens no session', async t => {
    const email = freshEmail('opened')
    const response = await post({
      email: ` ${email.toUpperCase()} `,
      password: PASSWORD,
      firstName: ' Ann ',
      lastName: 'e\u0301 😀',
      emailVerified: true,
    })
    isPrivateJson(t, response, 201)
    const user = response.json()
    hasShape(t, user, ADMIN_USER)
    t.strictSame(user, {
      id: user.id,
      email,
      ...newFields({ firstName: 'Ann', lastName: 'e\u0301 😀' }),
      emailVerified: true,
      disabled: false,
      factors: [],
      methods: ['password'],
      createdAt: iso(),
      updatedAt: iso(),
      lastRequestAt: null,
    })
    t.equal(response.headers.location, `/admin/users/${user.id}`)
    t.equal(response.headers['set-cookie'], undefined)
    const found = await get(user.id)
    t.strictSame(found.json(), user)
    t.equal(found.headers.etag, response.headers.etag)
    const signedIn = await signIn(app, email)
    t.equal(signedIn.statusCode, 200)
    const sessions = await app.inject({
      url: '/account/sessions',
      headers: bearer(signedIn.json().accessToken),
    })
    t.equal(sessions.json().results.length, 1, 'that of the sign-in alone')
  })

  t.test('an e-mail is enough: names are null and the e-mail is unverified', async t => {
    const user = (await post({ email: freshEmail() })).json()
    t.match(user, { firstName: null, lastName: null, emailVerified: false, disabled: false })
  })

  t.test('a user without a password signs in only after a reset by mail', async t => {
    const { email, id } = await createUser(app)
    for (const password of [PASSWORD, 'null', 'undefined', ' ', email, id])
      errorsAt(t, await signIn(app, email, password), 401, ['credentials'], password)
    t.equal((await send('/account/forgot-password', { email })).statusCode, 202)
    const token = await mails.token(email, 'passwordReset')
    const reset = await send('/account/reset-password', { token, password: PASSWORD })
    t.equal(reset.statusCode, 200, reset.body)
    t.equal((await signIn(app, email)).json().user?.id, id)
  })

  t.test(
    'a user without a password cannot sign in, and an impersonation cannot confirm a password',
    async t => {
      const { id, email } = await createUser(app)
      errorsAt(t, await signIn(app, email), 401, ['credentials'])
      const headers = bearer((await impersonate(app, id)).json().accessToken)
      const change = { currentPassword: PASSWORD, newPassword: `${PASSWORD}x` }
      const changed = await app.inject({ method: 'PUT', url: '/account/password', headers, payload: change })
      globalErrorOf(t, changed, 403)
      const payload = { password: PASSWORD }
      const removed = await app.inject({ method: 'DELETE', url: '/account', headers, payload })
      globalErrorOf(t, removed, 403)
    },
  )

  t.test('hashes of passwords that were not normalised sign in, composed or not', async t => {
    for (const [kind, passwordHash] of Object.entries(DECOMPOSED_HASHES)) {
      const { email } = await createUser(app, { passwordHash })
      t.equal((await signIn(app, email, `${DECOMPOSED}x`)).statusCode, 401, kind)
      t.equal((await signIn(app, email, DECOMPOSED)).statusCode, 200, `${kind}: as it was sent there`)
      t.equal((await signIn(app, email, DECOMPOSED)).statusCode, 200, `${kind}: again`)
      const composed = (await signIn(app, email, DECOMPOSED.normalize('NFC'))).statusCode
      t.equal(
        composed,
        kind === 'argon2id, as strong as ours' ? 401 : 200,
        `${kind}: composed, once hashed anew`,
      )
    }
    const { email } = await createUser(app, { password: DECOMPOSED.normalize('NFC') })
    t.equal((await signIn(app, email, DECOMPOSED)).statusCode, 200, 'ours are composed')
    t.equal((await signIn(app, email, DECOMPOSED.normalize('NFC'))).statusCode, 200)
  })

  t.test('a bcrypt match that may belong to a longer password is not rehashed', async t => {
    const x72 = 'x'.repeat(72)
    for (const [title, passwordHash, steps] of [
      [
        'over 72 bytes, of which bcrypt takes no notice',
        BCRYPT_OF.longer,
        [
          [`${x72}a tail wiht a typo`, 200],
          [`${x72}a tail`, 200],
          [`${'x'.repeat(71)}y`, 401],
          [`${x72}a tail wiht a typo`, 200],
          [`${'x'.repeat(70)}\u00e9\u00e9`, 401],
          [x72, 200],
          [`${x72}a tail`, 401],
          [x72, 200],
        ],
      ],
      [
        'repeated with a NUL between, as bcrypt does',
        BCRYPT_OF.a,
        [
          ['a\0a', 200],
          ['a\0b', 401],
          ['a', 200],
          ['a\0a', 401],
          ['a', 200],
        ],
      ],
    ] as const) {
      const { email } = await createUser(app, { passwordHash })
      for (const [password, status] of steps)
        t.equal(
          (await signIn(app, email, password)).statusCode,
          status,
          `${title}: ${JSON.stringify(password)}`,
        )
    }
  })

  t.test('imported bcrypt, argon2 and scrypt hashes sign in, the first time and later', async t => {
    for (const [name, passwordHash] of Object.entries(HASHES)) {
      const response = await post({ email: freshEmail(name), passwordHash })
      t.equal(response.statusCode, 201, `${name}: ${response.body}`)
      t.notMatch(response.body, passwordHash)
      const { id, email } = response.json()
      errorsAt(t, await signIn(app, email, `${PASSWORD}x`), 401, ['credentials'], name)
      for (const time of ['first', 'second'])
        t.equal((await signIn(app, email)).json().user?.id, id, `${name}: the ${time} time`)
      t.equal((await get(id)).headers.etag, response.headers.etag, `${name}: a stronger hash is no change`)
    }
  })

  t.test(
    'a hash with a password, malformed, of another format or too expensive is a 400 `passwordHash`',
    async t => {
      const email = freshEmail('refused')
      const good = String(HASHES.bcrypt)
      errorsAt(
        t,
        await post({ email, password: PASSWORD, passwordHash: good }),
        400,
        ['passwordHash'],
        'both',
      )
      const tail = '$c29tZXNhbHRzb21lc2FsdA$c29tZXNhbHRzb21lc2FsdA'
      for (const passwordHash of [
        ...['', 'x', PASSWORD, '5f4dcc3b5aa765d61d8327deb882cf99', '$1$salt$qJH7.N4xYta3aEG/dfqo/0'],
        ...['$pbkdf2-sha256$29000$c2FsdA$aGFzaA', '$argon2id$', '$2b$', good.slice(0, -1), `${good}x`],
        ...[` ${good}`, `${good}\0`, `\ud800${good}`, good.replace('$04$', '$31$')],
        ...[`$argon2id$v=19$m=4194304,t=2,p=1${tail}`, `$argon2id$v=19$m=65536,t=4294967295,p=1${tail}`],
        ...[`$scrypt$ln=30,r=8,p=1${tail}`, 'x'.repeat(10_000)],
        ...[5, null, [], {}, true],
      ])
        errorsAt(
          t,
          await post({ email, passwordHash }),
          400,
          ['passwordHash'],
          JSON.stringify(passwordHash).slice(0, 60),
        )
      t.equal((await post({ email })).statusCode, 201, 'nothing was opened')
    },
  )

  t.test('invalid and unknown properties are rejected by name, and no user is created', async t => {
    const email = freshEmail('kept.out')
    for (const [property, ...values] of [
      ['firstName', 5, '', ' ', 'x'.repeat(129), 'a\0', '\ud800', []],
      ['lastName', 5, '', ' ', '😀'.repeat(129), {}],
      ['password', 5, null, '', 'short', 'x'.repeat(129), 'password', email, '12341234'],
      ['emailVerified', 'true', 1, null, ''],
      ['email', null, 5, '', 'x', `a\0${email}`, `${'x'.repeat(250)}@example.com`],
      ['disabled', true],
      ['id', UNKNOWN_ID],
      ['createdAt', '2020-01-01T00:00:00.000Z'],
    ] as [string, ...unknown[]][])
      for (const value of values)
        errorsAt(t, await post({ email, [property]: value }), 400, [property], `${property}: ${value}`)
    errorsAt(t, await post({}), 400, ['email'])
    const all = { email: 'x', password: 'x', firstName: '', lastName: 5, emailVerified: 0, role: 1 }
    errorsAt(t, await post(all), 400, Object.keys(all), 'all at once')
    t.equal((await post({ email })).statusCode, 201)
  })

  t.test('a taken e-mail is a 409 in any letter case; of fifty concurrent requests one succeeds', async t => {
    const { email } = await signUp(app)
    for (const taken of [email, email.toUpperCase(), ` ${email}`])
      errorsAt(t, await post({ email: taken }), 409, ['email'], taken)
    const wanted = freshEmail('wanted')
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, index) => post({ email: index % 2 ? wanted : wanted.toUpperCase() })),
    )
    t.strictSame(statuses(responses), [201, ...Array<number>(49).fill(409)])
  })

  t.test('with REQUIRE_EMAIL_VERIFICATION a user created as verified signs in', async t => {
    const app = await build(t, { env: { REQUIRE_EMAIL_VERIFICATION: 'true' } })
    for (const [emailVerified, status] of [
      [false, 403],
      [true, 200],
    ] as const) {
      const { email } = await createUser(app, { password: PASSWORD, emailVerified })
      t.equal((await signIn(app, email)).statusCode, status)
    }
  })
})
