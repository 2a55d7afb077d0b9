/** `/forward-auth` leads browsers without a session to the sign-in page, and from there to the URL that the proxy has received. */
import t from 'tap'
import { bearer, build } from '../support/build.ts'

const PUBLIC_URL = 'https://auth.example.test'
const APP = 'https://app.example.test'
const env = { FORWARD_AUTH: 'on', PUBLIC_URL, RETURN_ORIGINS: APP, TRUST_PROXY: '127.0.0.1' }
const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const forwarded = {
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'app.example.test',
  'x-forwarded-uri': '/reports?of=2026&x=%2F',
  'x-forwarded-method': 'GET',
}
const URL_OF_PAGE = `${APP}/reports?of=2026&x=%2F`
const signInWith = (returnTo: string) => `${PUBLIC_URL}/sign-in?return_to=${encodeURIComponent(returnTo)}`

t.test('a browser is led to the sign-in page and back', async t => {
  const app = await build(t, { env })
  const locationOf = async (headers: Record<string, string>, url = '/forward-auth') => {
    const response = await app.inject({ url, headers: { ...browser, ...headers } })
    t.equal(response.statusCode, 303)
    t.equal(response.headers['cache-control'], 'no-store')
    return response.headers.location
  }
  t.equal(await locationOf(forwarded), signInWith(URL_OF_PAGE))
  t.equal(await locationOf({ 'x-original-url': URL_OF_PAGE }), signInWith(URL_OF_PAGE), 'nginx')
  t.equal(await locationOf(forwarded, '/forward-auth/reports'), signInWith(URL_OF_PAGE), 'Envoy')
  t.equal(await locationOf({ ...forwarded, ...bearer('x') }), signInWith(URL_OF_PAGE), 'an invalid token')
  t.equal(await locationOf({}), `${PUBLIC_URL}/sign-in`, 'no URL')
  for (const uri of ['reports', '@elsewhere.test/', '.elsewhere.test/', ''])
    t.equal(await locationOf({ ...forwarded, 'x-forwarded-uri': uri }), `${PUBLIC_URL}/sign-in`, uri)
  for (const url of [
    'https://elsewhere.test/',
    'javascript:alert(1)',
    `${APP}\\@elsewhere.test`,
    '//elsewhere.test',
  ])
    t.equal(await locationOf({ 'x-original-url': url }), `${PUBLIC_URL}/sign-in`, url)
  t.equal(
    await locationOf({ ...forwarded, 'x-forwarded-host': 'elsewhere.test' }),
    `${PUBLIC_URL}/sign-in`,
    'an origin that is not in RETURN_ORIGINS',
  )
})

t.test('what no trusted proxy sends does not count', async t => {
  const app = await build(t, { env: { ...env, TRUST_PROXY: '10.0.0.1' } })
  for (const headers of [forwarded, { 'x-original-url': URL_OF_PAGE }]) {
    const response = await app.inject({ url: '/forward-auth', headers: { ...browser, ...headers } })
    t.equal(response.headers.location, `${PUBLIC_URL}/sign-in`)
  }
})

t.test('programs, scripts and WebSockets get 401 without a target', async t => {
  const app = await build(t, { env })
  for (const headers of [
    {},
    { accept: '*/*' },
    { accept: 'application/json' },
    { ...browser, 'sec-fetch-mode': 'cors' },
    { ...browser, upgrade: 'websocket' },
  ]) {
    const response = await app.inject({ url: '/forward-auth', headers: { ...forwarded, ...headers } })
    t.equal(response.statusCode, 401)
    t.notOk('location' in response.headers)
  }
})

t.test('redirect=header names the target in a 401, which nginx passes on', async t => {
  const app = await build(t, { env })
  const response = await app.inject({
    url: '/forward-auth?redirect=header',
    headers: { ...browser, ...forwarded },
  })
  t.equal(response.statusCode, 401)
  t.equal(response.headers.location, signInWith(URL_OF_PAGE))
  const program = await app.inject({ url: '/forward-auth?redirect=header', headers: forwarded })
  t.notOk('location' in program.headers)
})

t.test('without hosted pages nobody is redirected', async t => {
  const app = await build(t, { env: { ...env, PAGES: 'off' } })
  t.equal((await app.inject({ url: '/forward-auth', headers: { ...browser, ...forwarded } })).statusCode, 401)
})
