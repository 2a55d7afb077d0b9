/** Validation of sign-up, sign-in and PUT /account (docs/design.md, "Errors" and "Contract"). */
import { join } from 'node:path'
import t from 'tap'
import { bearer, freshEmail, PASSWORD, signIn, signUp, temporaryFolder } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const env = { RATE_LIMIT: 'off' }
  const app = await build(t, { env })

  const post = (url: string, payload: unknown) =>
    app.inject({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(payload),
    })
  const register = (fields: Record<string, unknown> = {}) =>
    post('/account/sign-up', { email: freshEmail(), password: PASSWORD, ...fields })
  const rename = (token: string, payload: Record<string, unknown>) =>
    app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload })

  const NUL = '\u0000'
  const HIGH = '\ud800'
  const LOW = '\udc00'

  t.test('every invalid field is reported (§7.2)', async t => {
    errorsAt(t, await post('/account/sign-up', {}), 400, ['email', 'password'], 'missing')
    errorsAt(t, await post('/account/sign-in', {}), 400, ['email', 'password'], 'missing at sign-in')
    errorsAt(t, await post('/account/sign-in', { email: 1, password: null }), 400, ['email', 'password'])
    const types = { email: 1, password: true, firstName: 5, lastName: ['x'], role: 'admin' }
    errorsAt(t, await post('/account/sign-up', types), 400, Object.keys(types), 'types')
    const values = { email: 'nobody', password: 'x', firstName: '', lastName: 'y'.repeat(129), role: 0 }
    errorsAt(t, await post('/account/sign-up', values), 400, Object.keys(values), 'values')
    const rules = { email: 'nobody', password: 'password123', firstName: `a${NUL}`, lastName: '   ', x: 1 }
    errorsAt(t, await post('/account/sign-up', rules), 400, Object.keys(rules), 'all kinds of rules')
  })

  t.test('every message of a field is reported', async t => {
    const response = await register({ email: 'x'.repeat(255) })
    errorsAt(t, response, 400, ['email'])
    t.equal(new Set(response.json().errors.email).size, 2, 'too long, and no e-mail')
  })

  t.test('an unknown property is rejected by name', async t => {
    for (const property of [
      'disabled',
      'emailVerified',
      'id',
      'Email',
      'toString',
      'hasOwnProperty',
      'a.b',
      '',
    ]) {
      const response = await register({ [property]: true })
      errorsAt(t, response, 400, [property], `sign-up: "${property}"`)
      t.strictSame(response.json().errors[property], ['is not allowed'])
    }
    const body = { email: freshEmail(), password: PASSWORD, firstName: 'x' }
    const response = await post('/account/sign-in', body)
    errorsAt(t, response, 400, ['firstName'])
    t.strictSame(response.json().errors.firstName, ['is not allowed'])
  })

  t.test('types are not coerced', async t => {
    const { token } = await signUp(app)
    for (const value of [5, 0, true, false, [], ['x'], {}]) {
      const title = JSON.stringify(value)
      errorsAt(t, await register({ firstName: value }), 400, ['firstName'], title)
      errorsAt(t, await register({ email: value }), 400, ['email'], title)
      errorsAt(t, await register({ password: value }), 400, ['password'], title)
      errorsAt(t, await rename(token, { lastName: value }), 400, ['lastName'], title)
    }
    errorsAt(t, await register({ email: null, password: null }), 400, ['email', 'password'], 'null')
    for (const body of [[], 'x', 5, true, null, [{ email: freshEmail(), password: PASSWORD }]])
      globalErrorOf(t, await post('/account/sign-up', body), 400, `body ${JSON.stringify(body)}`)
  })

  t.test('an e-mail is trimmed and stored in lower case', async t => {
    const email = freshEmail('canonical')
    const response = await register({ email: ` \t${email.toUpperCase()}\n ` })
    t.equal(response.statusCode, 201, response.body)
    t.equal(response.json().user.email, email)
  })

  t.test('an e-mail has at most 254 characters and a valid form', async t => {
    const domain = `${'d'.repeat(60)}.${'e'.repeat(60)}.${'f'.repeat(60)}.example`
    const ofLength = (length: number) => `${'l'.repeat(length - domain.length - 1)}@${domain}`
    t.equal((await register({ email: ofLength(254) })).statusCode, 201, '254')
    t.equal((await register({ email: `  m${ofLength(254).slice(1)}  ` })).statusCode, 201, 'measured trimmed')
    errorsAt(t, await register({ email: ofLength(255) }), 400, ['email'], '255')
    for (const email of [
      '',
      '  ',
      '@',
      'a@',
      '@example.com',
      'a example@b.com',
      'a@b@example.com',
      'a@exam ple.com',
    ])
      errorsAt(t, await register({ email }), 400, ['email'], JSON.stringify(email))
  })

  t.test('NUL and lone surrogates are rejected under their field', async t => {
    const { token } = await signUp(app, { firstName: 'Kept' })
    for (const bad of [NUL, HIGH, LOW, LOW + HIGH, `${HIGH}x`]) {
      const title = JSON.stringify(bad)
      for (const text of [bad, `a${bad}`, `${bad}b`, `a${bad}b`]) {
        errorsAt(t, await register({ firstName: text }), 400, ['firstName'], `firstName ${title}`)
        errorsAt(t, await register({ lastName: text }), 400, ['lastName'], `lastName ${title}`)
        errorsAt(
          t,
          await rename(token, { firstName: text, lastName: text }),
          400,
          ['firstName', 'lastName'],
          title,
        )
        errorsAt(t, await register({ email: `${text}@example.com` }), 400, ['email'], `email ${title}`)
        errorsAt(t, await register({ email: freshEmail() + text }), 400, ['email'], `email ends ${title}`)
      }
    }
  })

  t.test('names are trimmed and have 1 to 128 characters, counted as code points', async t => {
    const { token } = await signUp(app)
    const longest = '😀'.repeat(128)
    for (const [given, kept] of [
      [longest, longest],
      [` \t${longest}\n `, longest],
      ['x'.repeat(128), 'x'.repeat(128)],
      ['  a b  ', 'a b'],
      ['x', 'x'],
      ['\u3000全角\u00a0', '全角'],
    ]) {
      t.equal((await register({ firstName: given })).json().user?.firstName, kept, `sign-up ${kept}`)
      t.equal((await rename(token, { lastName: given })).json().lastName, kept, `PUT /account ${kept}`)
    }
    for (const name of ['', ' ', '\t\n ', `${longest}😀`, 'x'.repeat(129)]) {
      errorsAt(t, await register({ firstName: name, lastName: name }), 400, ['firstName', 'lastName'], name)
      errorsAt(
        t,
        await rename(token, { firstName: name, lastName: name }),
        400,
        ['firstName', 'lastName'],
        name,
      )
    }
  })

  t.test('names are returned byte for byte', async t => {
    const { token } = await signUp(app)
    const names = {
      'combining characters, composed or not': ['e\u0301\u0323', '\u00e9'],
      'emoji of several code points': ['👩‍👩‍👧‍👦🏳️‍🌈', '👍🏽'],
      'right to left, with marks': ['שלום\u200f', '\u061cمحمد'],
      'quotes and backslashes': ['"\\"', "O'Brien \\u0041 </script>"],
      'joiners and selectors': ['نیلوفر\u200cالملوک', '❤\ufe0f\u200d🔥'],
      'the ends of the planes': ['a\uffff\ufffe\ufffd', 'a\u{1f600}\u{10ffff}'],
      'letters of two cases': ['İıſßẞΣς', 'ǅ'],
    }
    for (const [title, [firstName, lastName]] of Object.entries(names)) {
      const { user, accessToken } = (await register({ firstName, lastName })).json()
      t.strictSame({ ...user, firstName, lastName }, user, `${title}: sign-up`)
      const headers = bearer(accessToken)
      t.strictSame(
        (await app.inject({ url: '/account', headers })).json().lastName,
        lastName,
        `${title}: GET`,
      )
      const renamed = (await rename(token, { firstName, lastName })).json()
      t.strictSame({ ...renamed, firstName, lastName }, renamed, `${title}: PUT`)
      const again = (await app.inject({ url: '/account', headers: bearer(token) })).json()
      t.strictSame({ ...again, firstName, lastName }, again, `${title}: GET after PUT`)
    }
  })

  t.test('a password has 8 to 128 characters', async t => {
    for (const password of [
      'kV7#pq2z',
      '🦊🐙🦉🐢🦔🐝🦀🐬',
      `${'🦊🐙'.repeat(63)}🦊🐬`,
      'kV7#pq2z'.repeat(16),
    ])
      t.equal((await register({ password })).statusCode, 201, `${[...password].length} characters`)
    for (const password of [
      '',
      'kV7#pq2',
      '🦊🐙🦉🐢🦔🐝🦀',
      `${'🦊🐙'.repeat(64)}🦉`,
      `${'kV7#'.repeat(32)}k`,
    ])
      errorsAt(t, await register({ password }), 400, ['password'], `${[...password].length} characters`)
  })

  t.test('a password is never trimmed or truncated', async t => {
    const lengthy = 'kV7#'.repeat(31)
    for (const [title, password, ...others] of [
      ['differs in the 128th character', `${lengthy}abcd`, `${lengthy}abce`, lengthy],
      ['differs in the 128th emoji', `${'🦊'.repeat(127)}🐙`, `${'🦊'.repeat(127)}🐬`],
      ['NUL and what follows it', `kV7#pq2z${NUL}ab`, `kV7#pq2z${NUL}ac`, 'kV7#pq2z'],
      ['NUL first', `${NUL}kV7#pq2z`, `${NUL}kV7#pq2y`, 'kV7#pq2z'],
      ['spaces around', '  kV7#pq2z  ', 'kV7#pq2z'],
      ['letter case', 'kV7#pq2zé', 'kV7#pq2zÉ', 'KV7#PQ2ZÉ'],
    ] as const) {
      const response = await register({ password })
      t.equal(response.statusCode, 201, `${title}: ${response.body}`)
      const { email } = response.json().user
      t.equal((await signIn(app, email, password)).statusCode, 200, title)
      for (const other of others) errorsAt(t, await signIn(app, email, other), 401, ['credentials'], title)
    }
  })

  t.test('two passwords that differ in a lone surrogate never match', async t => {
    const response = await register({ password: `kV7#pq2z${HIGH}` })
    if (response.statusCode !== 201) {
      errorsAt(t, response, 400, ['password'])
      return
    }
    const { email } = response.json().user
    t.not((await signIn(app, email, `kV7#pq2z${LOW}`)).statusCode, 200)
    t.not((await signIn(app, email, 'kV7#pq2z\ufffd')).statusCode, 200)
  })

  t.test('common passwords are rejected', async t => {
    for (const password of ['password', '12345678', 'qwertyuiop', 'iloveyou', 'password123', 'Password1'])
      errorsAt(t, await register({ password }), 400, ['password'], password)
  })

  t.test('a password equal to the e-mail is rejected', async t => {
    const email = freshEmail('Equal')
    for (const password of [email, email.toLowerCase(), email.toUpperCase()])
      errorsAt(t, await register({ email, password }), 400, ['password'], password)
    errorsAt(t, await register({ email: ` ${email} `, password: email }), 400, ['password'], 'trimmed')
  })

  t.test('PASSWORD_MIN_LENGTH raises the minimum, for new passwords only', async t => {
    const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'shared.db')}`
    const lenient = await build(t, { env: { ...env, DATABASE_URL } })
    const { email } = await signUp(lenient, { password: 'kV7#pq2z' })
    await lenient.close()
    const strict = await build(t, { env: { ...env, DATABASE_URL, PASSWORD_MIN_LENGTH: '12' } })
    const attempt = (password: string) =>
      strict.inject({ method: 'POST', url: '/account/sign-up', payload: { email: freshEmail(), password } })
    errorsAt(t, await attempt('kV7#pq2zkV7'), 400, ['password'], '11 characters')
    t.equal((await attempt('kV7#pq2zkV7#')).statusCode, 201, '12 characters')
    t.equal((await signIn(strict, email, 'kV7#pq2z')).statusCode, 200, 'the older password still opens')
  })
})
