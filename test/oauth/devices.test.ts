/** Device authorization (RFC 8628): codes, the page, polling, and limits (docs/oauth.md). */
import t from 'tap'
import { allEvents } from '../support/admin-routes.ts'
import { accountStatus, cookie, manualClock, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { FormClient } from '../support/form-client.ts'
import { buildOAuth, claimsOf, ISSUER, registerClient } from '../support/oauth.ts'
import {
  connectDevice,
  DEVICE_CODE,
  decideDevice,
  deviceIn,
  enterCode,
  newDevice,
  poll,
  requestDevice,
  TOOL,
} from '../support/oauth-devices.ts'
import { refresh, tokensIn } from '../support/oauth-flow.ts'
import { race, rounds } from '../support/races.ts'

const SECOND = 1_000
const MINUTE = 60_000

await onEnginesOfRun(t, async (t, engine) => {
  t.test('P37: a device gets tokens once its user has pressed the button', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const client = await registerClient(app, {
      ...TOOL,
      name: 'Tool <b>',
      scopes: ['openid', 'account:read'],
    })
    const { token, id: userId, email } = await signUp(app)
    const response = await requestDevice(app, client)
    t.equal(response.headers['cache-control'], 'no-store')
    const { device_code: deviceCode, user_code: userCode, ...rest } = response.json()
    t.match(userCode, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
    t.strictSame(rest, {
      verification_uri: `${ISSUER}/device`,
      verification_uri_complete: `${ISSUER}/device?user_code=${userCode}`,
      ...{ expires_in: 600, interval: 5 },
    })
    t.match((await poll(app, { client, deviceCode })).json(), { error: 'authorization_pending' })
    const link = await app.inject({
      url: `/device?user_code=${userCode}`,
      headers: { accept: 'text/html', ...cookie(token) },
    })
    t.match(link.body, `value="${userCode}"`, 'the link fills in the form')
    t.notMatch(link.body, 'Tool', 'and leads to nothing')
    clock.advance(2 * MINUTE)
    const page = await enterCode(app, userCode, token)
    t.equal(page.statusCode, 200)
    t.match(page.body, 'Tool &lt;b&gt; on a device wants to use')
    t.match(page.body, '127.0.0.1')
    t.match(page.body, '2 minutes ago')
    t.match(page.body, 'Read your account')
    t.match(page.body, email)
    t.match((await poll(app, { client, deviceCode })).json(), { error: 'authorization_pending' })
    t.match((await decideDevice(app, deviceIn(page), 'approve', token)).body, 'The device is connected')
    const granted = await poll(app, { client, deviceCode })
    t.match(granted.json(), { token_type: 'Bearer', scope: 'openid account:read', refresh_token: String })
    t.match(claimsOf(granted.json().id_token), { sub: userId, aud: client.id, amr: ['pwd'] })
    const { accessToken, refreshToken } = tokensIn(granted)
    t.equal(await accountStatus(app, accessToken), 200)
    t.equal((await refresh(app, client, refreshToken)).statusCode, 200)
    t.match((await poll(app, { client, deviceCode })).json(), { error: 'invalid_grant' }, 'once')
    const [granting, approving] = await allEvents(app, { userId })
    t.match(granting, { type: 'grant.created', actor: { type: 'client' } })
    t.match(approving, { type: 'device.approved', actor: { type: 'user' }, details: { client: client.id } })
  })

  t.test('the page leads to the page to sign in, and back; a code is typed in any way', async t => {
    const app = await buildOAuth(engine, t)
    const { email } = await signUp(app)
    const device = await newDevice(app)
    const browser = await new FormClient(app).open(`/device?user_code=${device.userCode}`)
    t.equal(browser.path, '/sign-in')
    await browser.submit('', { email, password: PASSWORD })
    t.equal(browser.path, '/device')
    for (const spelling of [
      device.userCode,
      device.userCode.toLowerCase(),
      device.userCode.replace('-', ''),
      ` ${device.userCode.replace('-', ' ')} `,
    ]) {
      const own = browser.twin()
      await own.submit('device', { user_code: spelling })
      t.match(own.page, device.userCode)
      t.match(own.heading, 'Tool on a device')
      if (spelling === device.userCode) t.equal(own.status, 200)
    }
    await browser.submit('device', { user_code: 'AEIO-UAEI' })
    t.equal(browser.status, 400)
    t.match(browser.page, 'No device waits with this code')
  })

  t.test('a denial, and a decision without a session', async t => {
    const app = await buildOAuth(engine, t)
    const { token } = await signUp(app)
    const device = await newDevice(app)
    const page = await enterCode(app, device.userCode, token)
    const anonymous = await app.inject({
      ...{ method: 'POST', url: '/device/decision' },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ request: deviceIn(page), decision: 'approve' }).toString(),
    })
    t.equal(anonymous.statusCode, 401)
    t.match((await decideDevice(app, deviceIn(page), 'deny', token)).body, 'The device is not connected')
    t.match((await poll(app, device)).json(), { error: 'access_denied' })
    t.equal((await decideDevice(app, deviceIn(page), 'approve', token)).statusCode, 404)
    t.equal((await enterCode(app, device.userCode, token)).statusCode, 400, 'the code has ended')
  })

  t.test('P39: a device that polls early is told to slow down, and then recovers', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const { token } = await signUp(app)
    const device = await newDevice(app)
    const errors: string[] = []
    for (const wait of [0, SECOND, SECOND, 3 * SECOND, 5 * SECOND, 4 * SECOND]) {
      clock.advance(wait)
      errors.push((await poll(app, device)).json().error)
    }
    const [pending, early] = ['authorization_pending', 'slow_down']
    t.strictSame(errors, [pending, early, early, pending, pending, early])
    await connectDevice(app, device, token)
    t.equal((await poll(app, device)).statusCode, 200, 'a decision is no reason to wait')
  })

  t.test('a request ends after ten minutes', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const { token } = await signUp(app)
    const [pending, approved] = [await newDevice(app), await newDevice(app)]
    const request = deviceIn(await enterCode(app, pending.userCode, token))
    await connectDevice(app, approved, token)
    clock.advance(10 * MINUTE)
    t.equal((await decideDevice(app, request, 'approve', token)).statusCode, 404)
    for (const each of [pending, approved])
      t.match((await poll(app, each)).json(), { error: 'expired_token' })
  })

  t.test('P1: bad requests, and the device code of another client', async t => {
    const app = await buildOAuth(engine, t)
    const [client, other] = [await registerClient(app, TOOL), await registerClient(app, TOOL)]
    const web = await registerClient(app, {
      redirectUris: ['https://app.example.test/cb'],
      scopes: ['account:read'],
    })
    t.match((await requestDevice(app, web, { scope: 'account:read' })).json(), {
      error: 'unauthorized_client',
    })
    t.match((await requestDevice(app, client, { scope: 'unknown' })).json(), { error: 'invalid_scope' })
    t.match((await requestDevice(app, client, { resource: 'https://no.test' })).json(), {
      error: 'invalid_target',
    })
    const unknown = await requestDevice(app, { id: 'unknown', secret: null })
    t.equal(unknown.statusCode, 401)
    const { token } = await signUp(app)
    const device = await newDevice(app, { client })
    await connectDevice(app, device, token)
    t.match((await poll(app, { ...device, client: other })).json(), { error: 'invalid_grant' })
    t.match((await poll(app, { ...device, deviceCode: 'invented' })).json(), { error: 'invalid_grant' })
    t.equal((await poll(app, device)).statusCode, 200, 'its own client still gets it')
    const refused = await registerClient(app, { ...TOOL, grantTypes: [DEVICE_CODE] })
    t.equal(
      tokensIn(
        await (async () => {
          const own = await newDevice(app, { client: refused })
          await connectDevice(app, own, token)
          return poll(app, own)
        })(),
      ).refreshToken,
      undefined,
      'without refresh_token there is none',
    )
  })

  t.test('P25, P26: what ends the session or the user ends the approval', async t => {
    const app = await buildOAuth(engine, t)
    const { id, email } = await signUp(app)
    const { accessToken: token } = (await signIn(app, email, PASSWORD)).json()
    const [signedOut, disabled] = [await newDevice(app), await newDevice(app)]
    await connectDevice(app, signedOut, token)
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: cookie(token) })
    t.match((await poll(app, signedOut)).json(), { error: 'invalid_grant' })
    const { accessToken: next } = (await signIn(app, email, PASSWORD)).json()
    await connectDevice(app, disabled, next)
    await updateUser(app, id, { disabled: true })
    t.match((await poll(app, disabled)).json(), { error: 'invalid_grant' })
  })

  t.test('P38: guesses are limited by session and by address, and a success resets nothing', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const device = await newDevice(app)
    const { token } = await signUp(app)
    const guess = async (by: string, userCode: string, ip?: string) =>
      (await enterCode(app, userCode, by, ip)).statusCode
    for (let count = 0; count < 4; count += 1) t.equal(await guess(token, 'BBBB-BBBB', '203.0.113.1'), 400)
    t.equal(await guess(token, device.userCode, '203.0.113.2'), 200)
    t.equal(await guess(token, device.userCode, '203.0.113.3'), 429, 'by session')
    const statuses: number[] = []
    for (let count = 0; count < 4; count += 1) {
      const { token: other } = await signUp(app)
      for (let each = 0; each < 3; each += 1) statuses.push(await guess(other, 'CCCC-CCCC', '203.0.113.9'))
    }
    t.strictSame(statuses, [...Array(10).fill(400), 429, 429], 'by address')
  })

  t.test('ten requests of one client and address may wait', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const [client, other] = [await registerClient(app, TOOL), await registerClient(app, TOOL)]
    const { token } = await signUp(app)
    const responses = await Promise.all(Array.from({ length: 12 }, () => requestDevice(app, client)))
    t.equal(responses.filter(({ statusCode }) => statusCode === 200).length, 10)
    const refused = responses.find(({ statusCode }) => statusCode !== 200)
    t.equal(refused?.statusCode, 429)
    t.match(refused?.json(), { error: 'temporarily_unavailable' })
    t.ok(refused?.headers['retry-after'])
    t.equal((await requestDevice(app, other)).statusCode, 200)
    const first = responses.find(({ statusCode }) => statusCode === 200)?.json().user_code
    await connectDevice(app, { userCode: first }, token)
    t.equal((await requestDevice(app, client)).statusCode, 200, 'a decision makes room')
    clock.advance(10 * MINUTE)
    t.equal((await requestDevice(app, client)).statusCode, 200)
  })

  t.test(
    'of an approval and a denial at once, one counts; so of two approvals, and of two polls',
    async t => {
      const env = { DATABASE_URL: await engine.newDatabase(t) }
      const app = await buildOAuth(engine, t, { env })
      const second = engine.name === 'postgres' ? await buildOAuth(engine, t, { env }) : app
      const client = await registerClient(app, TOOL)
      for (const round of rounds) {
        const { token } = await signUp(app)
        const device = await newDevice(app, { client })
        const request = deviceIn(await enterCode(app, device.userCode, token, `203.0.113.${round}`))
        const other = round % 3 === 0 ? 'approve' : 'deny'
        const [approved, decided] = await race(
          round,
          () => decideDevice(app, request, 'approve', token),
          () => decideDevice(second, request, other, token),
        )
        t.strictSame([approved, decided].map(({ statusCode }) => statusCode).sort(), [200, 404])
        const polled = await race(
          round,
          () => poll(app, device),
          () => poll(second, device),
        )
        const isApproved = approved.statusCode === 200 || other === 'approve'
        t.strictSame(
          polled.map(response => response.json().error ?? 'granted').sort(),
          isApproved ? ['granted', 'invalid_grant'] : ['access_denied', 'access_denied'],
        )
      }
    },
  )
})
