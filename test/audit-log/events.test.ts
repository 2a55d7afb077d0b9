/** GET /admin/events (docs/design.md, "Account life cycle"): one event per change, none for a rejected request, no secrets. */
import bcrypt from 'bcryptjs'
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import type { AccountMails } from '#core/accounts/mails'
import { newEvent, OPERATOR } from '#core/audit-log/event'
import { allEvents, behindProxy, CLIENT, deleteUser, getEvents, PROXY } from '../support/admin-routes.ts'
import { ADMIN_KEY, asAdmin, bearer, freshEmail, manualClock, PASSWORD, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import { hasShape, isPrivateJson } from '../support/response-shapes.ts'

const OTHER_KEY = 'another-admin-key-0123456789'
const LINE = ['actor', 'at', 'details', 'id', 'ip', 'type', 'userId']

t.test('a type of event states its details', async t => {
  const changed = newEvent('user.changed', OPERATOR, 'id', 0, { fields: ['email'] })
  const ended = newEvent('sessions.ended', OPERATOR, 'id', 0)
  t.same([changed.details, ended.details], [{ fields: ['email'] }, null])
  // @ts-expect-error the fields are missing
  t.type(newEvent('user.changed', OPERATOR, 'id', 0), 'object')
  // @ts-expect-error it has no fields
  t.type(newEvent('user.signed-in', OPERATOR, 'id', 0, { fields: [] }), 'object')
})

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const env = { TRUST_PROXY: PROXY, ADMIN_KEY_PREVIOUS: OTHER_KEY }
  const app = await build(t, { clock: clock.now, env })
  const mails = mailbox(app)
  const { send, added } = behindProxy(app, clock)
  /** Every token and address in use. None may appear in the log. */
  const secrets = new Set([PASSWORD, ADMIN_KEY, OTHER_KEY, 'Zaphod', 'Beeblebrox'])

  t.test('each change on any route records one event with actor, user, address and time', async t => {
    const [email, moved, made, imported] = ['ann', 'moved', 'made', 'imported'].map(name => freshEmail(name))
    for (const each of [email, moved, made, imported]) secrets.add(String(each))
    const user = { id: '', token: '', email, password: PASSWORD }
    const target = { id: '' }
    const mine = (method: 'PUT' | 'POST' | 'DELETE', url: string, payload?: object) =>
      send(method, url, payload, bearer(user.token))
    const byKey = (method: 'PUT' | 'POST' | 'DELETE', url: string, payload?: object) =>
      send(method, url, payload, asAdmin)
    const enter = async (response: LightMyRequestResponse) => {
      user.token = response.json().accessToken
      user.id = response.json().user?.id
      secrets.add(user.token)
      return response
    }
    const signIn = async () => {
      const { email, password } = user
      return enter(await send('POST', '/account/sign-in', { email, password }))
    }
    const mailed = async (to: string | undefined, kind: keyof AccountMails) => {
      const token = await mails.token(String(to), kind)
      secrets.add(token)
      return token
    }
    const verify = async (to: string | undefined, kind: keyof AccountMails) =>
      mine('POST', '/account/verify-email', { token: await mailed(to, kind) })
    const first = async () => {
      const response = await app.inject({ url: '/account/sessions', headers: bearer(user.token) })
      return response.json().results.at(-1).id
    }
    const change = (payload: object) => byKey('PUT', `/admin/users/${target.id}`, payload)
    const signUp = { email, password: PASSWORD, firstName: 'Zaphod', lastName: 'Beeblebrox' }
    let reset = ''

    const own: [string, string, () => Promise<LightMyRequestResponse>][] = [
      ['sign-up', 'user.signed-up', async () => enter(await send('POST', '/account/sign-up', signUp))],
      ['sign-in', 'user.signed-in', signIn],
      ['PUT /account', 'user.changed', () => mine('PUT', '/account', { firstName: 'Arthur' })],
      ['resend', 'email.verification-requested', () => mine('POST', '/account/verify-email/resend')],
      ['verify-email', 'email.verified', () => verify(email, 'verification')],
      [
        'PUT /account/email',
        'email.change-requested',
        () => mine('PUT', '/account/email', { email: moved, password: PASSWORD }),
      ],
      ['the link of a new e-mail', 'email.changed', () => verify(moved, 'emailChange')],
      [
        'PUT /account/password',
        'password.changed',
        async () => {
          user.password = `${PASSWORD} 2`
          const payload = { currentPassword: PASSWORD, newPassword: user.password }
          return enter(await mine('PUT', '/account/password', payload))
        },
      ],
      [
        'forgot-password',
        'password.reset-requested',
        async () => {
          user.email = moved
          const response = await send('POST', '/account/forgot-password', { email: moved })
          reset = await mailed(moved, 'passwordReset')
          return response
        },
      ],
      [
        'reset-password',
        'password.reset',
        async () => {
          user.password = PASSWORD
          return enter(await send('POST', '/account/reset-password', { token: reset, password: PASSWORD }))
        },
      ],
      ['sign-in again', 'user.signed-in', signIn],
      ['one session', 'session.ended', async () => mine('DELETE', `/account/sessions/${await first()}`)],
      ['and again', 'user.signed-in', signIn],
      ['the other sessions', 'sessions.ended', () => mine('DELETE', '/account/sessions')],
      ['sign-out', 'session.ended', () => mine('POST', '/account/sign-out')],
      ['the last sign-in', 'user.signed-in', signIn],
      ['all sessions', 'sessions.ended', () => mine('DELETE', '/account/sessions?scope=all')],
    ]
    for (const [title, type, action] of own) {
      const { response, events } = await added(action)
      t.ok(response.statusCode < 300, `${title}: ${response.statusCode} ${response.body}`)
      const at = new Date(clock.now()).toISOString()
      const actor = type === 'password.reset-requested' ? events[0]?.actor : { type: 'user', id: user.id }
      t.match(events, [{ type, at, actor, userId: user.id, ip: CLIENT }], title)
      t.equal(events.length, 1, `${title}: one`)
      t.not(events[0]?.actor.type, 'adminKey', title)
    }

    const ndjson = { ...asAdmin, 'content-type': 'application/x-ndjson' }
    const line = JSON.stringify({ email: imported, passwordHash: bcrypt.hashSync('a pass phrase', 4) })
    const byAdmin: [string, string, () => Promise<LightMyRequestResponse>][] = [
      [
        'POST /admin/users',
        'user.created',
        async () => {
          const response = await byKey('POST', '/admin/users', { email: made, firstName: 'Zaphod' })
          target.id = response.json().id
          return response
        },
      ],
      ['names', 'user.changed', () => change({ lastName: 'Beeblebrox' })],
      ['e-mail', 'user.changed', () => change({ email: freshEmail('again') })],
      ['verified', 'user.changed', () => change({ emailVerified: true })],
      ['disabled, with a name', 'user.disabled', () => change({ disabled: true, firstName: 'Zaphod' })],
      ['enabled', 'user.enabled', () => change({ disabled: false })],
      ['impersonate', 'user.impersonated', () => byKey('POST', `/admin/users/${target.id}/impersonate`)],
      ['sessions', 'sessions.ended', () => byKey('DELETE', `/admin/users/${target.id}/sessions`)],
      ['DELETE', 'user.deleted', () => byKey('DELETE', `/admin/users/${target.id}`)],
      [
        'import',
        'user.created',
        async () => {
          const response = await send('POST', '/admin/users/import', `${line}\n`, ndjson)
          const url = `/admin/users?email=${encodeURIComponent(String(imported))}`
          target.id = (await app.inject({ url, headers: asAdmin })).json().results[0].id
          return response
        },
      ],
    ]
    const keys = new Set<string | null | undefined>()
    for (const [title, type, action] of byAdmin) {
      const { response, events } = await added(action)
      t.ok(response.statusCode < 300, `${title}: ${response.statusCode} ${response.body}`)
      const at = new Date(clock.now()).toISOString()
      t.match(events, [{ type, at, actor: { type: 'adminKey' }, userId: target.id, ip: CLIENT }], title)
      t.equal(events.length, 1, `${title}: one`)
      keys.add(events[0]?.actor.id)
    }
    t.equal(keys.size, 1, 'one key')
    const withOther = { 'x-admin-key': OTHER_KEY }
    const { events } = await added(() =>
      send('PUT', `/admin/users/${target.id}`, { lastName: 'x' }, withOther),
    )
    t.ok(!keys.has(events[0]?.actor.id), 'another key has another id')

    user.password = PASSWORD
    await signIn()
    const gone = await added(() => mine('DELETE', '/account', { password: PASSWORD }))
    t.equal(gone.response.statusCode, 204)
    const actor = { type: 'user', id: user.id }
    t.match(gone.events, [{ type: 'user.deleted', actor, userId: user.id, ip: null }])
    t.equal(gone.events.length, 1)
  })

  t.test('events list the changed fields or the ended sessions', async t => {
    const { id, token } = await signUp(app)
    const put = await added(() => send('PUT', '/account', { firstName: 'Zaphod' }, bearer(token)))
    t.match(JSON.stringify(put.events[0]?.details), /firstName/)
    t.notMatch(JSON.stringify(put.events[0]?.details), /lastName/)
    const both = { lastName: 'Beeblebrox', emailVerified: true }
    const admin = await added(() => send('PUT', `/admin/users/${id}`, both, asAdmin))
    t.match(JSON.stringify(admin.events[0]?.details), /lastName.*emailVerified|emailVerified.*lastName/)
    const sessions = (await send('GET', '/account/sessions', undefined, bearer(token))).json().results
    const out = await added(() => send('POST', '/account/sign-out', undefined, bearer(token)))
    t.match(JSON.stringify(out.events[0]?.details), sessions[0].id)
  })

  t.test(
    "deleting a user erases that user's addresses from events, but not those of administrators",
    async t => {
      const other = await signUp(app)
      const { id, token } = await signUp(app)
      await send('PUT', '/account', { firstName: 'Zaphod' }, bearer(token))
      await send('PUT', `/admin/users/${id}`, { lastName: 'Beeblebrox' }, asAdmin)
      const acting = (await send('POST', `/admin/users/${id}/impersonate`, undefined, asAdmin)).json()
        .accessToken
      await send('PUT', '/account', { firstName: null }, bearer(acting))
      const before = await allEvents(app, { userId: id })
      for (const { ip, type } of before) t.ok(ip, `${type} has an address`)
      clock.advance(1_000)
      t.equal((await deleteUser(app, id)).statusCode, 204)
      const [last, ...events] = await allEvents(app, { userId: id })
      t.match(last, { type: 'user.deleted', actor: { type: 'adminKey' }, ip: '127.0.0.1' })
      const erased = before.map(event => (event.actor.type === 'user' ? { ...event, ip: null } : event))
      t.strictSame(events, erased)
      t.ok(events.some(({ ip }) => ip === null) && events.some(({ ip }) => ip === CLIENT), 'both kinds')
      for (const { ip } of await allEvents(app, { userId: other.id })) t.ok(ip, 'other users are unaffected')
    },
  )

  t.test('a page has the documented shape, is not cacheable, and event types match OpenAPI', async t => {
    const response = await getEvents(app, { limit: 100 })
    isPrivateJson(t, response, 200)
    t.strictSame(Object.keys(response.json()).sort(), ['nextCursor', 'results'])
    const { schema } = (await app.inject({ url: '/openapi.json' }))
      .json()
      .paths['/admin/events'].get.parameters.find((each: { name: string }) => each.name === 'type')
    for (const line of response.json().results) {
      hasShape(t, line, LINE)
      t.strictSame(Object.keys(line.actor).sort(), ['id', 'type'])
      t.ok(schema.enum.includes(line.type), line.type)
    }
    t.equal((await app.inject({ url: '/admin/events' })).statusCode, 401)
    globalErrorOf(t, await app.inject({ url: '/admin/events?limit=0' }), 401, '401 before 400')
    t.equal((await app.inject({ method: 'HEAD', url: '/admin/events', headers: asAdmin })).statusCode, 200)
  })

  t.test('events contain no secrets, and no personal data except addresses', async t => {
    const log = JSON.stringify(await allEvents(app))
    t.ok(secrets.size > 15)
    for (const secret of secrets) t.notOk(log.includes(secret), secret)
    t.notMatch(log, /@|example\.com|\$argon2|\$2b\$|eyJ/)
  })
})
