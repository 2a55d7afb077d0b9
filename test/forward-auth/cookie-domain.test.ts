/** `COOKIE_DOMAIN`: the cookie of sign-ins for sibling hosts. */
import t from 'tap'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import { build, cookie, signIn, signUp } from '../support/build.ts'

const env = { PUBLIC_URL: 'https://auth.example.test', COOKIE_DOMAIN: 'example.test' }
const CLEARED =
  'ACCESS_TOKEN=; Max-Age=0; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax'

t.test('sign-in sets the cookie of the domain and clears that of the host; sign-out clears both', async t => {
  const app = await build(t, { env })
  const { email, token } = await signUp(app)
  const [own, ofDomain = ''] = [(await signIn(app, email)).headers['set-cookie']].flat()
  t.equal(own, CLEARED)
  t.match(
    ofDomain,
    /^ACCESS_TOKEN=[^;]{20,}; Max-Age=\d+; Domain=example\.test; Path=\/; HttpOnly; SameSite=Lax$/,
  )
  const signedOut = await app.inject({ method: 'POST', url: '/account/sign-out', headers: cookie(token) })
  t.equal(signedOut.statusCode, 204)
  t.same(signedOut.headers['set-cookie'], [CLEARED, CLEARED.replace('Path', 'Domain=example.test; Path')])
})

t.test('without it the host alone gets the cookie', async t => {
  const app = await build(t)
  const { email } = await signUp(app)
  t.notMatch(String((await signIn(app, email)).headers['set-cookie']), /Domain/)
})

t.test('a domain of other hosts stops the start', t => {
  const problemOf = (settings: Record<string, string>): string => {
    try {
      loadConfig({ NODE_ENV: 'test', ADMIN_KEY: 'x'.repeat(16), ...settings }, allFeatures())
      return ''
    } catch (error) {
      return String(error)
    }
  }
  t.equal(problemOf(env), '')
  t.equal(problemOf({ ...env, COOKIE_DOMAIN: 'auth.example.test' }), '')
  for (const domain of ['ple.test', 'other.test', 'b.auth.example.test'])
    t.match(
      problemOf({ ...env, COOKIE_DOMAIN: domain }),
      /COOKIE_DOMAIN needs a PUBLIC_URL whose host is/,
      domain,
    )
  t.match(problemOf({ COOKIE_DOMAIN: 'example.test' }), /COOKIE_DOMAIN needs a PUBLIC_URL/)
  for (const domain of ['test', '.example.test', '127.0.0.1', 'a b.test', 'localhost'])
    t.match(problemOf({ ...env, COOKIE_DOMAIN: domain }), /must be a domain such as example\.com/, domain)
  t.end()
})
