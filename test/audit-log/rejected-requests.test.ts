/**
 * The audit log has only changes and throttled accounts (docs/design.md, "Account life cycle"). Other rejections and reads are in the
 * service's log.
 */
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { verify } from '../support/account-routes.ts'
import { allEvents, behindProxy, createUser, PROXY, UNKNOWN_ID } from '../support/admin-routes.ts'
import { asAdmin, bearer, freshEmail, manualClock, PASSWORD, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { mailbox } from '../support/mailbox.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const env = { TRUST_PROXY: PROXY }
  const app = await build(t, { clock: clock.now, env })
  const { send, added } = behindProxy(app, clock)

  t.test('rejected changes and reads record no event', async t => {
    const { id, email, token } = await signUp(app)
    const disabled = await createUser(app, { password: PASSWORD })
    await send('PUT', `/admin/users/${disabled.id}`, { disabled: true }, asAdmin)
    const mine = bearer(token)
    const stale = { 'if-match': '"foreign"' }
    const admin = `/admin/users/${id}`
    const rejections: [number, () => Promise<LightMyRequestResponse>][] = [
      [202, () => send('POST', '/account/forgot-password', { email: freshEmail('nobody') })],
      [202, () => send('POST', '/account/forgot-password', { email: disabled.email })],
      [409, () => send('POST', '/account/sign-up', { email, password: PASSWORD })],
      [400, () => send('POST', '/account/sign-up', { email: freshEmail(), password: 'x' })],
      [401, () => send('POST', '/account/sign-in', { email, password: 'wrong password' })],
      [401, () => send('POST', '/account/sign-in', { email: freshEmail(), password: PASSWORD })],
      [403, () => send('POST', '/account/sign-in', { email: disabled.email, password: PASSWORD })],
      [400, () => send('PUT', '/account', {}, mine)],
      [412, () => send('PUT', '/account', { firstName: 'x' }, { ...mine, ...stale })],
      [401, () => send('PUT', '/account', { firstName: 'x' })],
      [400, () => send('PUT', '/account/email', { email: freshEmail(), password: 'wrong one' }, mine)],
      [409, () => send('PUT', '/account/email', { email: disabled.email, password: PASSWORD }, mine)],
      [
        400,
        () => send('PUT', '/account/password', { currentPassword: 'x', newPassword: `${PASSWORD}x` }, mine),
      ],
      [400, () => send('POST', '/account/verify-email', { token: 'x'.repeat(43) })],
      [400, () => send('POST', '/account/reset-password', { token: 'x'.repeat(43), password: PASSWORD })],
      [404, () => send('DELETE', `/account/sessions/${UNKNOWN_ID}`, undefined, mine)],
      [400, () => send('DELETE', '/account', { password: 'wrong one' }, mine)],
      [200, () => send('GET', '/account', undefined, mine)],
      [200, () => send('GET', '/account/sessions', undefined, mine)],
      [200, () => send('GET', admin, undefined, asAdmin)],
      [409, () => send('POST', '/admin/users', { email }, asAdmin)],
      [400, () => send('POST', '/admin/users', { email: freshEmail(), passwordHash: 'x' }, asAdmin)],
      [401, () => send('POST', '/admin/users', { email: freshEmail() })],
      [404, () => send('PUT', `/admin/users/${UNKNOWN_ID}`, { firstName: 'x' }, asAdmin)],
      [412, () => send('PUT', admin, { disabled: true }, { ...asAdmin, ...stale })],
      [409, () => send('PUT', admin, { email: disabled.email }, asAdmin)],
      [404, () => send('DELETE', `/admin/users/${UNKNOWN_ID}`, undefined, asAdmin)],
      [401, () => send('DELETE', admin)],
      [404, () => send('DELETE', `/admin/users/${UNKNOWN_ID}/sessions`, undefined, asAdmin)],
      [404, () => send('POST', `/admin/users/${UNKNOWN_ID}/impersonate`, undefined, asAdmin)],
      [403, () => send('POST', `/admin/users/${disabled.id}/impersonate`, undefined, asAdmin)],
    ]
    for (const [index, [status, action]] of rejections.entries()) {
      const { response, events } = await added(action)
      const title = `${index}: ${response.raw.req.method} ${response.statusCode}`
      t.equal(response.statusCode, status, `${title} ${response.body}`)
      t.strictSame(events, [], title)
    }
  })

  t.test(
    'with REQUIRE_EMAIL_VERIFICATION each sign-up is recorded once, as one of a user if there is one',
    async t => {
      const app = await build(t, { clock: clock.now, env: { ...env, REQUIRE_EMAIL_VERIFICATION: 'true' } })
      const payload = { email: freshEmail('twice'), password: PASSWORD }
      const sign = () => app.inject({ method: 'POST', url: '/account/sign-up', payload })
      const types = async () => (await allEvents(app)).map(({ type }) => type)
      t.equal((await sign()).statusCode, 202)
      t.strictSame(await types(), ['user.sign-up-requested'])
      t.match(await allEvents(app), [{ userId: null, ip: null, actor: { type: 'anonymous', id: null } }])
      const opened = await verify(app, await mailbox(app).token(payload.email, 'signUp'))
      clock.advance(1)
      t.equal((await sign()).statusCode, 202)
      const recorded = ['user.sign-up-repeated', 'user.signed-up', 'user.sign-up-requested']
      t.strictSame(await types(), recorded)
      t.match(await allEvents(app), [{ userId: opened.json().user.id }])
    },
  )
})
