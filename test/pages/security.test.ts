/** Pages of account security (docs/design.md, "Hosted pages"): without script, as a browser sends their forms. */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Secret, TOTP } from 'otpauth'
import t from 'tap'
import { accountOf, forgot } from '../support/account-routes.ts'
import { impersonate } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import {
  accountStatus,
  bearer,
  build,
  confirmedUser,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
} from '../support/build.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { FormClient } from '../support/form-client.ts'
import { mailbox } from '../support/mailbox.ts'
import { register } from '../support/passkeys.ts'

const ENCRYPTION_KEY = randomBytes(32).toString('base64url')
const NEW = 'nine otters crossed a bridge'
const MINUTES = 60_000
const STEP = 30_000

const signedIn = async (app: FastifyInstance, email: string, headers = {}): Promise<FormClient> => {
  const browser = await new FormClient(app, {
    headers: { 'user-agent': 'A <b>Browser</b>', ...headers },
  }).open('/sign-in')
  return browser.submit('sign-in', { email, password: PASSWORD })
}

const clock = manualClock(Date.now())
const app = await build(t, { clock: clock.now, env: { ENCRYPTION_KEY } })
const mails = mailbox(app)

/** The code of an app with the secret, at the clock of the service. */
const codeOf = (secret: string): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: clock.now() })

const secretIn = (page: string): string =>
  (/class="secret"><code>([A-Z2-7 ]+)<\/code>/.exec(page)?.[1] ?? '').replaceAll(' ', '')

const codesIn = (page: string): string[] =>
  Array.from(page.matchAll(/<li>((?:[a-z\d]{4}-)+[a-z\d]{4})<\/li>/g), ([, code = '']) => code)

t.test('D8: a session is named by its browser and system, never by text of its user agent', async t => {
  const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0'
  for (const [userAgent, name] of [
    [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Safari/537.36 Edg/142.0.0.0`, 'Edge, Windows'],
    [`Mozilla/5.0 (Linux; Android 16; K) ${chrome} Mobile Safari/537.36`, 'Chrome, Android'],
    [`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${chrome} Safari/537.36`, 'Chrome, ChromeOS'],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 26_1 like Mac OS X) AppleWebKit/605.1.15 Version/26.1 Mobile/15E148 Safari/604.1',
      'Safari, iOS',
    ],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:146.0) Firefox/146.0', 'Firefox, macOS'],
    ['curl/8.14.1', 'Unknown device'],
    ['Your bank: call +1 555 0100 <b>now</b>', 'Unknown device'],
    ['Your bank for Windows', 'Windows'],
    ['', 'Unknown device'],
  ] as const) {
    const { email } = await signUp(app)
    const { page } = await signedIn(app, email, { 'user-agent': userAgent })
    t.match(page, `<strong>${name} <span class="badge brand">This device</span>`)
  }
})

t.test('without a session every page and button leads to sign-in', async t => {
  for (const url of ['/security', '/security/password', '/security/api-keys', '/security/proof']) {
    const response = await app.inject(url)
    t.match(response, { statusCode: 303, headers: { 'cache-control': 'no-store' } }, url)
    const browser = await new FormClient(app).open(url)
    t.equal(browser.path, '/sign-in', url)
  }
  const { id, token } = await signUp(app)
  for (const [url, fields] of [
    ['/security/sessions/end', { id }],
    ['/security/sessions/end-others', {}],
    ['/security/totp', {}],
    ['/security/totp/confirm', { code: '123456' }],
    ['/security/totp/remove', {}],
    ['/security/recovery-codes', {}],
    ['/security/passkeys/remove', { id }],
    ['/security/api-keys', { name: 'x', lifetime: 'never', 'scope:users:read': 'on' }],
    ['/security/api-keys/revoke', { id }],
    ['/security/password', { currentPassword: PASSWORD, newPassword: NEW }],
    ['/security/proof', { password: PASSWORD }],
    ['/security/verify-email', {}],
    ['/sign-out', {}],
  ] as const) {
    // A bearer token is no session of a browser.
    for (const headers of [{}, bearer(token), { cookie: 'ACCESS_TOKEN=x.y.z' }]) {
      const response = await app.inject({ method: 'POST', url, headers, payload: fields })
      t.equal(response.statusCode, 303, `${url}: ${response.body.slice(0, 200)}`)
      t.match(response.headers.location, /sign-in$/)
    }
  }
  t.equal(await accountStatus(app, token), 200)
})

t.test('D8: sessions are listed without hostile user agents, and ended', async t => {
  const { email, token } = await signUp(app)
  const browser = await signedIn(app, email)
  t.match(browser.page, '<strong>Unknown device ')
  t.notMatch(browser.page, 'Browser')
  t.match(browser.page, `<p class="break">${email}</p>`)
  const other = (await signIn(app, email)).json().accessToken
  await browser.open('/security')
  t.equal(browser.page.match(/security\/sessions\/end"/g)?.length, 3)
  await browser.submit('sessions/end', {}, 0)
  t.match(browser.page, 'The session has ended.')
  t.equal(await accountStatus(app, other), 401, 'the newest')
  await browser.submit('end-others')
  t.match(browser.page, 'All other sessions have ended.')
  t.equal(await accountStatus(app, token), 401)
  t.notMatch(browser.page, 'end-others')
  await browser.submit('sessions/end')
  t.equal(browser.path, '/sign-in', 'its own')
  t.equal(browser.cookie('ACCESS_TOKEN'), undefined)
})

t.test('signing out ends the session and clears the cookie', async t => {
  const { email } = await signUp(app)
  const browser = await signedIn(app, email)
  const token = browser.cookie('ACCESS_TOKEN') ?? ''
  await browser.submit('sign-out')
  t.equal(browser.path, '/sign-in')
  t.equal(browser.cookie('ACCESS_TOKEN'), undefined)
  t.equal(await accountStatus(app, token), 401)
})

t.test('what was done is said once, after it was done, and to nobody else', async t => {
  const { email } = await signUp(app)
  const browser = await signedIn(app, email)
  for (const name of ['password', 'nonsense', ''])
    t.notMatch((await browser.open(`/security?done=${name}`)).page, 'Your password is changed.')
  await browser.open('/security')
  t.notMatch(browser.page, 'role="status"')
  const session = `ACCESS_TOKEN=${browser.cookie('ACCESS_TOKEN')}`
  const response = await app.inject({
    method: 'POST',
    url: '/security/sessions/end-others',
    headers: { cookie: session },
  })
  t.equal(response.headers.location, '../../security')
  const [notice] = response.cookies
  t.match(notice, { name: 'PAGE_NOTICE', path: '/', httpOnly: true, sameSite: 'Strict', maxAge: 60 })
  const shown = (value: string) =>
    app.inject({ url: '/security', headers: { cookie: `${session}; PAGE_NOTICE=${value}` } })
  const first = await shown(notice?.value ?? '')
  t.match(first.body, 'All other sessions have ended.')
  t.match(first.cookies, [{ name: 'PAGE_NOTICE', value: '', path: '/', maxAge: 0 }])
  for (const other of ['nonsense', 'constructor', '%3Cb%3E', ''])
    t.notMatch((await shown(other)).body, 'role="status"', other)
  await browser.submit('end-others')
  t.match(browser.page, 'All other sessions have ended.')
  t.equal(browser.cookie('PAGE_NOTICE'), undefined)
  t.notMatch((await browser.open('/security')).page, 'role="status"')
})

t.test('a button that is pressed twice says that there is nothing left to do', async t => {
  const { email } = await signUp(app)
  const { accessToken } = (await signIn(app, email)).json()
  await register(app, accessToken)
  await createKey(app, accessToken)
  const browser = await signedIn(app, email)
  for (const [action, text] of [
    ['passkeys/remove', 'This passkey is removed already.'],
    ['api-keys/revoke', 'This API key is revoked already.'],
    ['sessions/end', 'This session has ended already.'],
  ] as const) {
    // The first of the list is not the session of this browser: its other session is newer.
    if (action === 'sessions/end') await signIn(app, email)
    await browser.open('/security')
    const again = browser.twin()
    await browser.submit(action)
    t.equal(browser.path, '/security', action)
    t.match(browser.page, 'role="status"')
    await again.submit(action)
    t.equal(again.status, 404)
    t.equal(again.heading, 'Already done')
    t.match(again.page, text)
    t.notMatch(again.page, 'Error')
    t.match(again.page, 'Sign out')
  }
  await browser.submit('security/totp')
  const code = codeOf(secretIn(browser.page))
  const again = browser.twin()
  await browser.submit('totp/confirm', { code })
  t.equal(browser.heading, 'Save your recovery codes')
  await again.submit('totp/confirm', { code })
  t.equal(again.status, 409)
  t.equal(again.heading, 'Your authenticator app is on')
  t.match(again.page, 'If you have not seen your recovery codes')
  await browser.open('/security')
  const other = browser.twin()
  await browser.submit('totp/remove')
  t.match(browser.page, 'The authenticator app is removed.')
  await other.submit('totp/remove')
  t.equal(other.heading, 'Already done')
  t.match(other.page, 'Your account has no authenticator app.')
  const headers = { accept: 'application/json', cookie: `ACCESS_TOKEN=${browser.cookie('ACCESS_TOKEN')}` }
  const json = await app.inject({ method: 'POST', url: '/security/totp/remove', headers })
  globalErrorOf(t, json, 404)
  const incomplete = { name: 'x', lifetime: 'never' }
  const key = await app.inject({ method: 'POST', url: '/security/api-keys', headers, payload: incomplete })
  errorsAt(t, key, 400, ['scopes'])
  clock.advance(11 * MINUTES)
  const proof = await app.inject({ method: 'POST', url: '/security/totp', headers })
  globalErrorOf(t, proof, 403)
  t.match(proof.headers['www-authenticate'], 'insufficient_user_authentication')
})

t.test('the password', async t => {
  const { email, token } = await signUp(app)
  const browser = await signedIn(app, email)
  await browser.open('/security/password')
  await browser.submit('password', { currentPassword: 'wrong', newPassword: NEW })
  t.equal(browser.status, 400)
  t.match(browser.page, 'Current password: The password is wrong.')
  await browser.submit('password', { currentPassword: PASSWORD, newPassword: PASSWORD })
  t.match(browser.page, 'This is your current password.')
  await browser.submit('password', { currentPassword: PASSWORD, newPassword: email })
  t.match(browser.page, 'The password must not be your e-mail.')
  for (const secret of [PASSWORD, NEW]) t.notMatch(browser.page, secret)
  await browser.submit('password', { currentPassword: PASSWORD, newPassword: NEW })
  t.equal(browser.path, '/security')
  t.match(browser.page, 'Your password is changed.')
  t.equal(await accountStatus(app, token), 401)
  t.equal((await signIn(app, email, NEW)).statusCode, 200)
})

t.test('the password is removed where a passkey is left, and a first one is chosen', async t => {
  const { email, token } = await signUp(app)
  const browser = await signedIn(app, email)
  await browser.submit('security/password/remove')
  t.equal(browser.status, 409)
  t.match(browser.page, 'last way to sign in')
  await register(app, token)
  await browser.open('/security')
  clock.advance(11 * MINUTES)
  await browser.submit('security/password/remove')
  t.equal(browser.heading, 'Confirm that it is you')
  await browser.submit('password/remove', { password: PASSWORD })
  t.match(browser.page, 'Your password is removed.')
  t.match(browser.page, '<span class="muted">Not set</span>')
  await browser.open('/security/proof')
  t.match(browser.page, 'Please sign in again')
  t.match(browser.page, 'href="../sign-in?again"')
  await browser.open('/security/password')
  t.notMatch(browser.page, 'Current password')
  await browser.submit('password', { newPassword: NEW })
  t.equal(browser.status, 403, 'the sign-in is too old')
  t.equal((await signIn(app, email, NEW)).statusCode, 401)
})

t.test('an authenticator app: added, used to sign in and to reset the password, removed', async t => {
  const { email } = await confirmedUser(app)
  const browser = await signedIn(app, email)
  await browser.submit('security/totp')
  t.equal(browser.heading, 'Add an authenticator app')
  t.match(browser.page, /<img class="qr" alt="[^"]+" src="data:image\/svg\+xml,%3Csvg/)
  t.match(browser.page, 'href="otpauth://totp/')
  const secret = secretIn(browser.page)
  await browser.submit('totp/confirm', { code: '000000' })
  t.equal(browser.status, 400)
  t.match(browser.page, 'The code is wrong')
  t.notMatch(browser.page, 'class="qr"', 'the secret is shown once')
  await browser.submit('totp/confirm', { code: codeOf(secret) })
  t.equal(browser.heading, 'Save your recovery codes')
  const codes = codesIn(browser.page)
  t.equal(codes.length, 10)
  await browser.open('/security')
  t.match(browser.page, '>10 left</span>')

  clock.advance(STEP)
  const second = await signedIn(app, email)
  t.equal(second.path, '/sign-in')
  t.equal(second.status, 200)
  t.equal(second.heading, 'Enter your code')
  t.match(second.page, 'autocomplete="one-time-code"')
  t.notMatch(second.page, 'type="password"')
  t.match(second.page, `value="${email}"`)
  t.notMatch(second.page, PASSWORD)
  await second.submit('sign-in/code', { code: '000000' })
  t.match(second.page, 'The code is wrong')
  await second.submit('sign-in/code', { code: codeOf(secret) })
  t.equal(second.path, '/security')
  const third = await signedIn(app, email)
  await third.submit('sign-in/code', { code: codes[0] ?? '' })
  t.match(third.page, '>9 left</span>')

  await forgot(app, email)
  const token = await mails.token(email, 'passwordReset')
  const reset = await new FormClient(app).open(`/reset-password?token=${token}`)
  t.match(reset.page, 'enter a code from your authenticator app')
  await reset.submit('reset-password', { password: NEW })
  t.equal(reset.status, 401)
  clock.advance(STEP)
  await reset.submit('reset-password', { password: NEW, code: codeOf(secret) })
  t.equal(reset.path, '/security')

  await reset.submit('recovery-codes')
  t.equal(codesIn(reset.page).length, 10)
  t.notOk(codesIn(reset.page).includes(codes[1] ?? ''))
  await reset.open('/security')
  await reset.submit('totp/remove')
  t.match(reset.page, 'The authenticator app is removed.')
  t.equal((await signIn(app, email, NEW)).statusCode, 200)
})

t.test('ten minutes after sign-in, changes ask for the password, or for a code of the app', async t => {
  const { email } = await signUp(app)
  const browser = await signedIn(app, email)
  clock.advance(11 * MINUTES)
  await browser.submit('security/totp')
  t.equal(browser.status, 403)
  t.equal(browser.heading, 'Confirm that it is you')
  t.notMatch(browser.page, 'one-time-code', 'without an app there are no codes')
  await browser.submit('security/totp', { password: 'wrong' })
  t.equal(browser.status, 400)
  t.match(browser.page, 'Password: The password is wrong.')
  await browser.submit('security/totp', { password: PASSWORD })
  const secret = secretIn(browser.page)
  await browser.submit('totp/confirm', { code: codeOf(secret) })
  t.equal(browser.heading, 'Save your recovery codes')

  await browser.open('/security/api-keys')
  await browser.submit('api-keys', { name: '<i>Key</i>', lifetime: '30', 'scope:users:read': 'on' })
  t.equal(browser.heading, 'Confirm that it is you')
  t.match(browser.page, 'one-time-code')
  t.notMatch(browser.page, 'current-password', 'which does not suffice')
  await browser.submit('api-keys')
  t.equal(browser.status, 403, 'nothing was entered')
  clock.advance(STEP)
  await browser.submit('api-keys', { code: codeOf(secret) })
  t.equal(browser.heading, 'Your new API key')
  t.match(browser.page, '&lt;i&gt;Key&lt;/i&gt;')
  const [, key = ''] = /class="secret"><code>(gate_pat_\w+)<\/code>/.exec(browser.page) ?? []
  t.equal((await app.inject({ url: '/users', headers: bearer(key) })).statusCode, 200)
  t.equal((await app.inject({ url: '/account', headers: bearer(key) })).statusCode, 403, 'with its scope')

  await browser.open('/security')
  t.notMatch(browser.page, key)
  t.match(browser.page, '&lt;i&gt;Key&lt;/i&gt;')
  await browser.submit('api-keys/revoke')
  t.match(browser.page, 'The API key is revoked.')
  t.equal((await app.inject({ url: '/users', headers: bearer(key) })).statusCode, 401)

  await browser.open('/security/proof')
  clock.advance(STEP)
  await browser.submit('security/proof')
  t.match(browser.page, 'Code: Enter a code.')
  await browser.submit('security/proof', { code: codeOf(secret) })
  t.match(browser.page, 'For ten minutes you can change everything here.')
  await browser.submit('totp/remove')
  t.match(browser.page, 'The authenticator app is removed.')
})

t.test('an API key needs a name and a scope', async t => {
  const { email } = await signUp(app)
  const browser = await signedIn(app, email)
  await browser.open('/security/api-keys')
  await browser.submit('api-keys', { name: 'A key' })
  t.equal(browser.status, 400)
  t.match(browser.page, 'What the key may do: This is required.')
  t.match(browser.page, 'value="A key"')
  await browser.submit('api-keys', { name: ' ', 'scope:users:read': 'on', 'scope:account:read': 'on' })
  t.match(browser.page, 'Name: This is required.')
  t.equal(browser.page.match(/ checked/g)?.length, 2, 'what was chosen stays chosen')
})

t.test('the confirmation of the e-mail can be sent again', async t => {
  const { email, token } = await signUp(app)
  const browser = await signedIn(app, email)
  await browser.submit('verify-email')
  t.match(browser.page, 'A mail with a link is on its way.')
  const link = `/account/verify-email?token=${await mails.token(email, 'verification', 2)}`
  await browser.open(link)
  await browser.submit('confirm')
  t.equal((await accountOf(app, token)).emailVerified, true)
  await browser.open('/security')
  t.notMatch(browser.page, 'Send the link again')
})

t.test('what an administrator who acts as the user cannot do is said', async t => {
  const { id } = await signUp(app)
  const { accessToken } = (await impersonate(app, id)).json()
  const response = await app.inject({
    method: 'POST',
    url: '/security/totp',
    headers: { cookie: `ACCESS_TOKEN=${accessToken}`, 'accept-language': 'de' },
  })
  t.equal(response.statusCode, 403)
  t.match(response.body, 'Wer in Ihrem Namen handelt, kann das nicht tun.')
})

t.test('ids that are none reach no route of the API', async t => {
  const { email, token } = await signUp(app)
  const browser = await signedIn(app, email)
  for (const url of ['/security/sessions/end', '/security/api-keys/revoke', '/security/passkeys/remove'])
    for (const id of ['', '.', '..', '../..', '%2e%2e', '?scope=all', 'x'])
      t.equal(
        (
          await app.inject({
            method: 'POST',
            url,
            headers: { cookie: `ACCESS_TOKEN=${browser.cookie('ACCESS_TOKEN')}` },
            payload: { id },
          })
        ).statusCode,
        400,
        `${url} ${id}`,
      )
  t.equal(await accountStatus(app, token), 200)
})

t.test('the script that calls the API is for passkeys alone', async t => {
  const { email } = await signUp(app)
  const browser = await signedIn(app, email)
  const withScript =
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
  t.match(browser.response?.headers['content-security-policy'], withScript)
  t.match(browser.page, '<script type="module" src="./pages/passkeys.js"></script>')
  await browser.open('/security/password')
  t.same(browser.page.match(/<script[^>]*>/g), ['<script type="module" src="../pages/page-script.js">'])
  t.notMatch(String(browser.response?.headers['content-security-policy']), 'connect-src')
  t.match((await app.inject('/pages/passkeys.js')).headers, {
    'content-type': 'text/javascript; charset=utf-8',
  })
})
