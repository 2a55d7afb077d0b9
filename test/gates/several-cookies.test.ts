/** Several cookies ACCESS_TOKEN in a request: another host of the domain, or another path, may have set one (CASES D4). */
import t from 'tap'
import { accountStatus, asAdmin, bearer, build, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { FormClient } from '../support/form-client.ts'

const several = (...values: readonly string[]) => ({
  cookie: values.map(value => `ACCESS_TOKEN=${value}`).join('; '),
})

/** Another application's: garbage, a JWT, what is not a cookie value. */
const FOREIGN = [
  'garbage',
  '',
  '""',
  '%zz',
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJl',
]

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t)
  const call = (method: 'GET' | 'POST' | 'PUT', url: string, headers: Record<string, string>) =>
    app.inject({ method, url, headers })
  const whoIs = async (headers: Record<string, string>): Promise<string | number> => {
    const response = await call('GET', '/account', headers)
    return response.statusCode === 200 ? response.json().id : response.statusCode
  }
  const another = async (email: string): Promise<string> => (await signIn(app, email)).json().accessToken

  t.test('D4: of several cookies any valid one counts, wherever it is', async t => {
    const { id, token, email } = await signUp(app)
    for (const foreign of FOREIGN) {
      t.equal(await whoIs(several(foreign, token)), id, `${foreign} before`)
      t.equal(await whoIs(several(token, foreign)), id, `${foreign} behind`)
      t.equal(await whoIs(several(foreign, token, foreign, token)), id, `${foreign} twice`)
    }
    t.equal(await whoIs({ cookie: `ACCESS_TOKEN =x;ACCESS_TOKEN\t=\t${token}; a=b` }), id, 'white space')
    t.equal(await whoIs({ cookie: `ACCESS_TOKEN; ACCESS_TOKEN=x;  ACCESS_TOKEN=${token}` }), id)
    t.equal(await whoIs(several(token, await another(email))), id, 'two sessions of one user')
    t.equal(await whoIs({ ...several('', '', ''), ...bearer(token) }), id, 'empty ones are absent')
    t.equal(await whoIs({ ...several('x', 'y'), ...bearer(token) }), 401, 'the header does not replace them')
    t.equal(await whoIs(several('x', 'y')), 401)
  })

  t.test('D4: other names and values are no cookie ACCESS_TOKEN', async t => {
    const [{ token, id }, other] = [await signUp(app), await signUp(app)]
    for (const name of [
      'X_ACCESS_TOKEN',
      'ACCESS_TOKEN2',
      'access_token',
      '__Host-ACCESS_TOKEN',
      'a=ACCESS_TOKEN',
    ])
      for (const header of [
        `${name}=${other.token}; ACCESS_TOKEN=${token}`,
        `ACCESS_TOKEN=${token}; ${name}=${other.token}`,
      ])
        t.equal(await whoIs({ cookie: header }), id, header.slice(0, 20))
  })

  t.test('D4: the values that are looked at are bounded', async t => {
    const { token, id } = await signUp(app)
    const garbage = (count: number) => Array.from({ length: count }, (_, index) => `x${index}`)
    t.equal(await whoIs(several(...garbage(31), token)), id)
    t.equal(await whoIs(several(...garbage(600), token)), 401)
    t.equal(await whoIs(several(token, ...garbage(600))), id)
    t.equal(await whoIs({ cookie: `${'ACCESS_TOKEN2=x; '.repeat(600)}ACCESS_TOKEN=${token}` }), id)
  })

  t.test('D4: valid cookies of different users are nobody, with an error of its own', async t => {
    const [one, two] = [await signUp(app), await signUp(app)]
    for (const headers of [several(one.token, two.token), several('x', two.token, one.token)]) {
      const response = await call('GET', '/account', headers)
      t.equal(response.statusCode, 401)
      t.match(response.json().errors.global, [/several users: sign out/])
      t.equal(response.headers['www-authenticate'], 'Bearer error="invalid_token"')
    }
    t.equal(await whoIs({ ...several(one.token, two.token), ...bearer(one.token) }), 401)
    const publicRoute = await call('GET', '/health', several(one.token, two.token))
    t.equal(publicRoute.statusCode, 200)
    const csrf = { ...several('x', one.token), origin: 'https://elsewhere.example' }
    t.equal((await call('POST', '/account/sign-out', csrf)).statusCode, 403, 'a page of another site')
    t.equal(await accountStatus(app, one.token), 200)
  })

  t.test('D4: an API key beside a session does not count', async t => {
    const [one, two] = [await signUp(app), await signUp(app)]
    const created = await app.inject({
      method: 'POST',
      url: '/account/api-keys',
      headers: bearer(two.token),
      payload: { name: 'planted', scopes: ['account:read'], expiresAt: null },
    })
    const key = created.json().token
    t.equal(await whoIs(several(key)), two.id)
    const others = await app.inject({
      method: 'POST',
      url: '/account/api-keys',
      headers: bearer(one.token),
      payload: { name: 'planted', scopes: ['account:read'], expiresAt: null },
    })
    for (const url of ['/account', '/sign-in', '/account/sign-out']) {
      const headers = several(key, others.json().token)
      const response = await call(url === '/account/sign-out' ? 'POST' : 'GET', url, headers)
      t.equal(response.statusCode, url === '/sign-in' ? 200 : 401, url)
      t.notMatch(response.body, /several/, 'no sign-out ends keys of several users')
    }
    for (const headers of [several(key, one.token), several(one.token, key)])
      t.equal(await whoIs(headers), one.id)
    t.equal((await call('POST', '/account/sign-out', several(key, one.token))).statusCode, 204)
    t.equal(await accountStatus(app, one.token), 401)
  })

  t.test('D4: sign-out ends every session that the cookies name', async t => {
    const [one, two] = [await signUp(app), await signUp(app)]
    for (const [url, expected] of [
      ['/account/sign-out', 204],
      ['/sign-out', 303],
    ] as const) {
      const [first, second, third] = [
        await another(one.email),
        await another(two.email),
        await another(two.email),
      ]
      const response = await call('POST', url, several('garbage', first, second, third))
      t.equal(response.statusCode, expected, url)
      t.match(response.cookies, [{ name: 'ACCESS_TOKEN', value: '' }])
      for (const token of [first, second, third]) t.equal(await accountStatus(app, token), 401, url)
      const events = await app.inject({ url: `/admin/events?userId=${two.id}&limit=2`, headers: asAdmin })
      for (const event of events.json().results)
        t.match(event, { type: 'session.ended', actor: { type: 'user', id: two.id } })
    }
    t.equal(await accountStatus(app, one.token), 200, 'not the others')
    t.equal((await call('POST', '/account/sign-out', several('x', 'y'))).statusCode, 401)
    const disabled = await another(one.email)
    await app.inject({
      method: 'PUT',
      url: `/admin/users/${two.id}`,
      headers: asAdmin,
      payload: { disabled: true },
    })
    t.equal(await whoIs(several(two.token, disabled)), one.id, 'a disabled user does not count')
  })
})

t.test('D4: a page says why a browser is not signed in after a sign-in', async t => {
  const app = await build(t)
  const [one, two] = [await signUp(app), await signUp(app)]
  const signInOf = async (browser: FormClient) => {
    await browser.open('/sign-in')
    return browser.submit('sign-in', { email: one.email, password: PASSWORD })
  }

  const foreign = new FormClient(app, { changeCookies: own => `ACCESS_TOKEN=garbage; ${own}` })
  await signInOf(foreign)
  t.equal(foreign.heading, 'Your account', 'a foreign cookie')

  const blocked = new FormClient(app, { changeCookies: () => '' })
  await signInOf(blocked)
  t.equal(blocked.status, 401)
  t.equal(blocked.heading, 'You are not signed in')
  t.match(blocked.page, 'Allow cookies for this site')
  await blocked.open('/security')
  t.equal(blocked.path, '/sign-in', 'without a sign-in before')

  const other = new FormClient(app, { changeCookies: own => `ACCESS_TOKEN=${two.token}; ${own}` })
  await other.post('/sign-in', { email: one.email, password: PASSWORD })
  t.equal(other.status, 401)
  t.equal(other.heading, 'You are signed in to several accounts')
  const own = other.cookie('ACCESS_TOKEN') ?? ''
  await other.open('/security')
  t.equal(other.path, '/sign-in')
  t.equal(other.heading, 'You are signed in to several accounts')
  await other.submit('sign-out')
  t.equal(other.heading, 'Sign in')
  for (const token of [own, two.token]) t.equal(await accountStatus(app, token), 401)
  await signInOf(other)
  t.equal(other.heading, 'Your account', 'the planted cookie is worth nothing any more')
})
