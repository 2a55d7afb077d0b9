/** The relying party that follows from the configuration (docs/design.md, "Passkeys"). */
import t from 'tap'
import { relyingPartyOf } from '#features/passkeys/relying-party'
import { call } from '../support/account-routes.ts'
import { build, cookie, signUp } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import {
  creationOptions,
  ENV,
  postPasskey,
  register,
  requestOptions,
  signInWith,
} from '../support/passkeys.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'

const partyOf = (publicUrl: string, webUrl = publicUrl, allowedOrigins: string[] = []) =>
  relyingPartyOf({ publicUrl, webUrl, allowedOrigins, productName: 'Gatehouse' })

t.test('the host of WEB_URL is the id, and its pages and those below it may use passkeys', async t => {
  t.same(partyOf('https://accounts.example.com/auth'), {
    id: 'accounts.example.com',
    name: 'Gatehouse',
    origins: ['https://accounts.example.com'],
  })
  t.same(
    partyOf('https://api.example.com', 'https://example.com/app?tab=1', [
      'https://admin.example.com:8443',
      'https://example.com.evil.com',
      'https://notexample.com',
      'https://example.com',
    ]),
    {
      id: 'example.com',
      name: 'Gatehouse',
      origins: ['https://api.example.com', 'https://example.com', 'https://admin.example.com:8443'],
    },
  )
  t.same(
    partyOf('https://api.example.com', 'https://app.example.com')?.origins,
    ['https://app.example.com'],
    'a page of the API cannot use passkeys of the application',
  )
})

t.test('this machine is localhost, another address has no passkeys', async t => {
  for (const host of ['127.0.0.1', '[::1]', 'localhost'])
    t.same(partyOf(`http://${host}:3000`, `http://${host}:3000/docs`, ['http://localhost:5173']), {
      id: 'localhost',
      name: 'Gatehouse',
      origins: ['http://localhost:3000', 'http://localhost:5173'],
    })
  for (const host of ['10.0.0.7', '[2001:db8::7]', '0.0.0.0']) t.equal(partyOf(`http://${host}`), null, host)
})

t.test(
  'apps of ALLOWED_ORIGINS add passkeys and sign in with them, and are nowhere else an origin',
  async t => {
    const apps = [
      'android:apk-key-hash:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
      'ios:bundle-id:com.example.app',
    ] as const
    const app = await build(t, {
      env: { ...ENV, ALLOWED_ORIGINS: ['http://localhost:5173', ...apps].join() },
    })
    for (const origin of apps) {
      const user = await signUp(app)
      const { authenticator } = await register(app, user.token, { origin })
      t.equal((await signInWith(app, authenticator)).json().user.id, user.id, origin)

      const headers = { ...cookie(user.token), origin }
      const forged = await app.inject({
        method: 'PUT',
        url: '/account',
        headers,
        payload: { firstName: 'Eve' },
      })
      t.equal(globalErrorOf(t, forged, 403), 'A page of another site cannot send this request')
      const read = await app.inject({ url: '/account', headers })
      t.notOk('access-control-allow-origin' in read.headers)

      for (const other of [`${origin}x`, origin.toUpperCase(), `https://${origin}`, 'android:', '']) {
        const begun = (await creationOptions(app, user.token)).json()
        const credential = new SoftwareAuthenticator({ origin: other }).create(begun)
        t.equal((await postPasskey(app, user.token, { credential })).statusCode, 400, other)
        t.equal((await signInWith(app, authenticator, { origin: other })).statusCode, 401, other)
      }
    }
  },
)

t.test('without a host name the routes are 403', async t => {
  const app = await build(t, { env: { PUBLIC_URL: 'https://192.0.2.7' } })
  const { token } = await signUp(app)
  const message = 'This service has an IP address in place of a host name, so passkeys cannot be used'
  t.equal(globalErrorOf(t, await requestOptions(app), 403), message)
  t.equal(globalErrorOf(t, await creationOptions(app, token), 403), message)
  const clientDataJSON = Buffer.from('{"challenge":"x"}').toString('base64url')
  const response = { clientDataJSON, authenticatorData: 'AA', signature: 'AA' }
  const credential = { id: 'AA', rawId: 'AA', type: 'public-key', response }
  t.equal(globalErrorOf(t, await call(app, 'POST', '/account/sign-in/passkey', { credential }), 403), message)
})
