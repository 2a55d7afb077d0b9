/** Where the token is read from (§5.1.1), and the cookie that carries it (docs/design.md, "Tokens and sessions"). */
import t from 'tap'
import { bearer, build, cookie, freshEmail, manualClock, PASSWORD, signIn, signUp } from '../support/build.ts'

type Headers = Record<string, string>

const DAY = 86_400_000

const app = await build(t)

const account = (headers: Headers) => app.inject({ url: '/account', headers })

/** The id of the user that a request is identified as, `undefined` for none. */
const whoIs = async (headers: Headers): Promise<string | undefined> => {
  const response = await account(headers)
  return response.statusCode === 200 ? response.json().id : undefined
}

const bad = (token: string): string => `${token.slice(0, -10)}AAAAAAAAAA`

t.test('the cookie takes precedence over the header (§5.1.1)', async t => {
  const [one, two] = [await signUp(app), await signUp(app)]
  t.equal(await whoIs(cookie(one.token)), one.id)
  t.equal(await whoIs(bearer(two.token)), two.id)
  t.equal(await whoIs({ ...cookie(one.token), ...bearer(two.token) }), one.id)
  t.equal(await whoIs({ ...cookie(two.token), ...bearer(bad(one.token)) }), two.id)
  t.equal(await whoIs({ ...cookie(bad(one.token)), ...bearer(two.token) }), undefined)
  t.equal(await whoIs({ ...cookie('garbage'), ...bearer(two.token) }), undefined)
})

t.test('an empty cookie counts as absent (§5.1.1)', async t => {
  const user = await signUp(app)
  t.equal(await whoIs({ ...cookie(''), ...bearer(user.token) }), user.id)
  t.equal(await whoIs({ cookie: 'ACCESS_TOKEN; a=b', ...bearer(user.token) }), user.id)
  const unknown = await account(cookie(''))
  t.equal(unknown.statusCode, 401)
  t.equal(unknown.headers['www-authenticate'], 'Bearer', 'no token was presented')
})

t.test('the cookie is found among others, by its exact name (§5.1.1)', async t => {
  const user = await signUp(app)
  t.equal(await whoIs({ cookie: `a=b; ACCESS_TOKEN=${user.token}; c=d` }), user.id)
  t.equal(await whoIs({ cookie: `a=b;ACCESS_TOKEN=${user.token}` }), user.id)
  for (const name of ['access_token', 'XACCESS_TOKEN', 'ACCESS_TOKEN2', '__Host-ACCESS_TOKEN', 'token']) {
    const response = await account({ cookie: `${name}=${user.token}` })
    t.equal(response.statusCode, 401, name)
    t.equal(response.headers['www-authenticate'], 'Bearer', `${name} is no token`)
  }
  for (const name of ['access-token', 'x-access-token', 'token', 'x-authorization']) {
    t.equal(await whoIs({ [name]: user.token }), undefined, `header ${name}`)
  }
  const query = await app.inject({ url: `/account?ACCESS_TOKEN=${user.token}&access_token=${user.token}` })
  t.equal(query.statusCode, 401, 'the query is no place for a token')
})

t.test('the scheme Bearer is case-insensitive, and no other scheme is accepted (§5.1.1)', async t => {
  const user = await signUp(app)
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    t.equal(await whoIs({ authorization: `${scheme} ${user.token}` }), user.id, scheme)
  }
  const { token } = user
  const absent = [
    token,
    `Basic ${token}`,
    `Token ${token}`,
    `Bearer${token}`,
    `Bearer:${token}`,
    `JWT ${token}`,
  ]
  const empty = ['', 'Bearer', 'Bearer ', 'bearer', 'Basic', ' ']
  for (const authorization of [...absent, ...empty]) {
    const response = await account({ authorization })
    t.equal(response.statusCode, 401, authorization.slice(0, 20))
    t.equal(response.headers['www-authenticate'], 'Bearer', `absent: "${authorization.slice(0, 20)}"`)
    t.equal((await app.inject({ url: '/health', headers: { authorization } })).statusCode, 200)
  }
})

t.test('an invalid token is reported differently from a missing one', async t => {
  const user = await signUp(app)
  t.equal((await account({})).headers['www-authenticate'], 'Bearer')
  for (const headers of [bearer('garbage'), bearer(bad(user.token)), cookie('garbage')]) {
    const challenge = String((await account(headers)).headers['www-authenticate'])
    t.match(challenge, /^Bearer\b/)
    t.match(challenge, 'error="invalid_token"')
  }
})

t.test('public routes accept valid, invalid and missing tokens (§5.1.3)', async t => {
  const user = await signUp(app)
  for (const token of [user.token, bad(user.token), 'garbage', '']) {
    for (const headers of [bearer(token), cookie(token)]) {
      for (const url of ['/health', '/ready']) {
        t.equal((await app.inject({ url, headers })).statusCode, 200, url)
      }
      const payload = { email: user.email, password: PASSWORD }
      const signedIn = await app.inject({ method: 'POST', url: '/account/sign-in', headers, payload })
      t.equal(signedIn.statusCode, 200, 'sign-in')
    }
  }
  const payload = { email: freshEmail(), password: PASSWORD }
  const headers = bearer('garbage')
  const signedUp = await app.inject({ method: 'POST', url: '/account/sign-up', headers, payload })
  t.equal(signedUp.statusCode, 201, 'sign-up')
})

t.test('the cookie contains the token and lasts as long as the session', async t => {
  for (const NODE_ENV of ['development', 'production']) {
    const clock = manualClock()
    const app = await build(t, { clock: clock.now, env: { NODE_ENV, SESSION_LIFETIME: '7d' } })
    const payload = { email: freshEmail(), password: PASSWORD }
    const signedUp = await app.inject({ method: 'POST', url: '/account/sign-up', payload })
    clock.advance(DAY + 300)
    const signedIn = await signIn(app, payload.email)
    for (const [response, now] of [
      [signedUp, clock.now() - DAY - 300] as const,
      [signedIn, clock.now()] as const,
    ]) {
      const { accessToken, expiresAt } = response.json()
      const [set, ...others] = [response.headers['set-cookie'] ?? []].flat()
      t.strictSame(others, [], 'one cookie')
      const [pair, ...attributes] = String(set).split('; ')
      t.equal(pair, `ACCESS_TOKEN=${accessToken}`)
      const maxAge = Math.floor((Date.parse(expiresAt) - now) / 1_000)
      t.equal(maxAge, 7 * 86_400)
      const expected = ['HttpOnly', `Max-Age=${maxAge}`, 'Path=/', 'SameSite=Lax']
      t.strictSame(
        attributes.sort(),
        NODE_ENV === 'production' ? [...expected, 'Secure'] : expected,
        NODE_ENV,
      )
      t.equal(response.headers['cache-control'], 'no-store')
    }
  }
})

t.test('no other response sets a cookie', async t => {
  const user = await signUp(app)
  const wrong = await signIn(app, user.email, 'not the pass phrase')
  const responses = [wrong, await account(cookie(user.token)), await account(cookie('garbage'))]
  for (const response of responses) t.notOk(response.headers['set-cookie'])
})
