/** Invitations to organizations: who gets the token, and who can use it (docs/organizations.md). */
import t from 'tap'
import { impersonate } from '../support/admin-routes.ts'
import {
  bearer,
  confirmedUser,
  freshEmail,
  manualClock,
  PASSWORD,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsOf } from '../support/error-response.ts'
import { readLog } from '../support/event-log.ts'
import { mailbox } from '../support/mailbox.ts'
import { adminCall, call, team } from '../support/organizations.ts'

const UNKNOWN = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'
const DAY = 86_400_000

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock(Date.now())
  const app = await build(t, {
    clock: clock.now,
    env: { ORGANIZATION_MAX_INVITATIONS: '3', SESSION_LIFETIME: '90d', SESSION_IDLE: '90d' },
  })
  const mails = mailbox(app)
  type Caller = Awaited<ReturnType<typeof signUp>>
  const invite = (by: Caller, url: string, email: string, roles: readonly string[] = ['member']) =>
    call(app, by, 'POST', `${url}/invitations`, { email, roles })
  const accept = (user: Caller, token: string, more: object = {}) =>
    call(app, user, 'POST', '/account/invitations/accept', { token, ...more })
  const token = (email: string, count = 1) => mails.token(email, 'organizationInvitation', count)

  t.test('an invited user becomes a member, also one who signs up afterwards', async t => {
    const { url, owner, organization } = await team(app)
    const email = freshEmail('invited')
    const created = await invite(owner, url, email.toUpperCase(), ['member', 'admin'])
    t.equal(created.statusCode, 201)
    const { id, createdAt, expiresAt, ...rest } = created.json()
    t.strictSame(rest, { email, roles: ['admin', 'member'], invitedBy: owner.id })
    t.equal(Date.parse(expiresAt) - Date.parse(createdAt), 7 * DAY)
    t.strictSame((await call(app, owner, 'GET', `${url}/invitations`)).json().results, [created.json()])
    const ben = await confirmedUser(app, { email })
    const waiting = (await call(app, ben, 'GET', '/account/invitations')).json().results
    t.strictSame(
      waiting.map((each: { id: string; organization: object; roles: string[] }) => [
        each.id,
        each.organization,
        each.roles,
      ]),
      [[id, { id: organization.id, name: organization.name }, ['admin', 'member']]],
    )
    const accepted = await accept(ben, await token(email))
    t.equal(accepted.statusCode, 200)
    t.equal(accepted.json().id, organization.id)
    t.equal((await call(app, ben, 'GET', `${url}/invitations`)).json().results.length, 0, 'as an admin')
    errorsOf(t, await accept(ben, await token(email)), 400, 'once')
    const events = (await readLog(app)).filter(({ details }) => details?.organization === organization.id)
    t.strictSame(
      events.slice(-3).map(({ type, userId, details }) => [type, userId, details?.invitation]),
      [
        ['organization.invitation-created', owner.id, id],
        ['organization.invitation-accepted', ben.id, id],
        ['organization.member-added', ben.id, undefined],
      ],
    )
    const own = (await call(app, ben, 'GET', '/account/events?type=organization.invitation-accepted')).json()
    t.equal(own.results.length, 1)
  })

  t.test('G1: a changed token is 400, and so is one with another organization or e-mail', async t => {
    const { url, owner } = await team(app)
    const ben = await confirmedUser(app)
    await invite(owner, url, ben.email)
    const right = await token(ben.email)
    const flipped = right.slice(0, -1) + (right.endsWith('A') ? 'B' : 'A')
    for (const wrong of [flipped, right.slice(1), `${right}a`, right.toUpperCase(), UNKNOWN, '\u0000', ' '])
      t.strictSame(Object.keys(errorsOf(t, await accept(ben, wrong), 400, wrong)), ['token'])
    for (const more of [{ organizationId: UNKNOWN }, { email: freshEmail() }, { roles: ['owner'] }])
      errorsOf(t, await accept(ben, right, more), 400)
    t.equal((await accept(ben, right)).statusCode, 200)
  })

  t.test('G2: a user whose confirmed e-mail is another one gets 403, and the invitation stays', async t => {
    const { url, owner } = await team(app)
    const [ben, eve] = [await confirmedUser(app), await confirmedUser(app)]
    await invite(owner, url, ben.email)
    const right = await token(ben.email)
    errorsOf(t, await accept(eve, right), 403)
    const unconfirmed = await signUp(app)
    errorsOf(t, await accept(unconfirmed, right), 403)
    await invite(owner, url, unconfirmed.email)
    t.strictSame((await call(app, unconfirmed, 'GET', '/account/invitations')).json().results, [])
    await updateUser(app, ben.id, { email: freshEmail(), emailVerified: true })
    errorsOf(t, await accept(ben, right), 403, 'after another e-mail')
    await updateUser(app, ben.id, { email: ben.email, emailVerified: true })
    t.equal((await accept(ben, right)).statusCode, 200)
  })

  t.test('G3: nobody reads the token by any route', async t => {
    const { url, owner } = await team(app)
    const ben = await confirmedUser(app)
    const created = await invite(owner, url, ben.email)
    const secret = await token(ben.email)
    const own = [
      '/organizations',
      url,
      `${url}/members`,
      `${url}/invitations`,
      '/account/events',
      '/account/invitations',
    ]
    const bodies = [created.body]
    for (const path of own)
      for (const user of [owner, ben]) bodies.push((await call(app, user, 'GET', path)).body)
    for (const path of [`/admin${url}`, `/admin${url}/members`, `/admin/users/${ben.id}`, '/admin/events'])
      bodies.push((await adminCall(app, 'GET', path)).body)
    for (const body of bodies) t.notMatch(body, secret.slice(12))
    t.equal((await mails.all()).filter(({ text }) => text?.includes(secret)).length, 1)
  })

  t.test('G7: an invitation has no redirect: a foreign origin is refused at its creation', async t => {
    const { url, owner } = await team(app)
    const payload = { email: freshEmail(), roles: ['member'] }
    for (const more of ['redirectTo', 'redirectUri', 'url', 'returnTo'])
      errorsOf(
        t,
        await call(app, owner, 'POST', `${url}/invitations`, { ...payload, [more]: 'https://evil.example/' }),
        400,
      )
    const { email } = payload
    await invite(owner, url, email)
    const [mail] = await mails.to(email, 'organizationInvitation')
    const links = [...(mail?.text ?? '').matchAll(/https?:\/\/\S+/g)].map(([link]) => new URL(link))
    t.ok(links.length > 0 && links.every(({ origin }) => origin === new URL(app.config.publicUrl).origin))
    t.ok(links.some(({ pathname }) => pathname === '/organizations/accept'))
  })

  t.test('G7: a domain or an address in the name is nothing of which mail programs make a link', async t => {
    for (const name of [
      'evil.example/win',
      'help@evil.example',
      'mailto:x@evil.example',
      'tel:+1900123456',
    ]) {
      const { url, owner } = await team(app, { name })
      const email = freshEmail()
      await invite(owner, url, email)
      const [mail] = await mails.to(email, 'organizationInvitation')
      for (const body of [mail?.text, mail?.html]) {
        t.notMatch(body, name)
        t.match(body?.replaceAll('\u200b', ''), name)
      }
    }
  })

  t.test('a second invitation of an address replaces the first', async t => {
    const { url, owner } = await team(app)
    const ben = await confirmedUser(app)
    await invite(owner, url, ben.email, ['admin'])
    const first = await token(ben.email)
    const second = (await invite(owner, url, ben.email)).json()
    const [one, ...others] = (await call(app, owner, 'GET', `${url}/invitations`)).json().results
    t.strictSame([one.id, others.length], [second.id, 0])
    errorsOf(t, await accept(ben, first), 400)
    t.equal((await accept(ben, await token(ben.email, 2))).statusCode, 200)
    errorsOf(t, await call(app, ben, 'GET', `${url}/invitations`), 403, 'a member')
  })

  t.test('admins invite below them, and end only such invitations', async t => {
    const { url, owner, admin, member } = await team(app)
    for (const roles of [['admin'], ['owner', 'member']])
      errorsOf(t, await invite(admin, url, freshEmail(), roles), 403)
    errorsOf(t, await invite(member, url, freshEmail()), 403)
    errorsOf(t, await call(app, member, 'GET', `${url}/invitations`), 403)
    const email = freshEmail()
    const high = (await invite(owner, url, email, ['owner'])).json()
    errorsOf(t, await invite(admin, url, email), 403, 'no replacement')
    errorsOf(t, await call(app, admin, 'DELETE', `${url}/invitations/${high.id}`), 403)
    const low = (await invite(admin, url, freshEmail())).json()
    t.equal((await call(app, admin, 'DELETE', `${url}/invitations/${low.id}`)).statusCode, 204)
    errorsOf(t, await call(app, admin, 'DELETE', `${url}/invitations/${low.id}`), 404)
    const other = await team(app)
    errorsOf(t, await call(app, other.owner, 'DELETE', `${other.url}/invitations/${high.id}`), 404)
  })

  t.test('revoked, expired, of a deleted organization, of an inviter without the right: 400', async t => {
    const { url, owner, admin } = await team(app)
    const ben = await confirmedUser(app)
    const { id } = (await invite(owner, url, ben.email)).json()
    await call(app, owner, 'DELETE', `${url}/invitations/${id}`)
    errorsOf(t, await accept(ben, await token(ben.email)), 400, 'revoked')
    await invite(admin, url, ben.email)
    await call(app, owner, 'PUT', `${url}/members/${admin.id}`, { roles: ['member'] })
    errorsOf(t, await accept(ben, await token(ben.email, 2)), 400, 'the inviter may not invite any more')
    await invite(owner, url, ben.email)
    clock.advance(7 * DAY)
    errorsOf(t, await accept(ben, await token(ben.email, 3)), 400, 'expired')
    t.strictSame((await call(app, owner, 'GET', `${url}/invitations`)).json().results, [])
    await invite(owner, url, ben.email)
    await adminCall(app, 'DELETE', `/admin${url}`)
    errorsOf(t, await accept(ben, await token(ben.email, 4)), 400, 'deleted')
  })

  t.test('an owner who becomes an admin loses the invitations that only owners may send', async t => {
    const { url, owner, admin } = await team(app)
    await call(app, owner, 'PUT', `${url}/members/${admin.id}`, { roles: ['owner'] })
    const invited = await Promise.all([confirmedUser(app), confirmedUser(app), confirmedUser(app)])
    const roles = [['member', 'owner'], ['admin'], ['member']]
    for (const [index, { email }] of invited.entries()) await invite(owner, url, email, roles[index])
    await call(app, admin, 'PUT', `${url}/members/${owner.id}`, { roles: ['admin', 'member'] })
    const { results } = (await call(app, owner, 'GET', `${url}/invitations`)).json()
    t.strictSame(
      results.map((invitation: { roles: readonly string[] }) => invitation.roles),
      [['member']],
    )
    const statuses: number[] = []
    for (const user of invited) statuses.push((await accept(user, await token(user.email))).statusCode)
    t.strictSame(statuses, [400, 400, 200])
  })

  t.test('S4: invitations of a disabled user do not work until the user is enabled', async t => {
    const { url, admin } = await team(app)
    const ben = await confirmedUser(app)
    await invite(admin, url, ben.email)
    const presented = await token(ben.email)
    await updateUser(app, admin.id, { disabled: true })
    errorsOf(t, await accept(ben, presented), 400, 'disabled')
    const page = await app.inject({ url: `/organizations/accept?token=${presented}` })
    t.notMatch(page.body, ben.email)
    await updateUser(app, admin.id, { disabled: false })
    t.equal((await accept(ben, presented)).statusCode, 200)
  })

  t.test('an impersonated session gives nobody access that stays when it has ended', async t => {
    const { url, owner, admin } = await team(app)
    const { accessToken } = (await impersonate(app, owner.id)).json()
    const impersonated = { ...owner, token: accessToken }
    errorsOf(t, await invite(impersonated, url, freshEmail(), ['owner']), 403)
    const roles = { roles: ['owner'] }
    errorsOf(t, await call(app, impersonated, 'PUT', `${url}/members/${admin.id}`, roles), 403)
    errorsOf(t, await accept(impersonated, 'a-token'), 403)
    t.strictSame((await call(app, owner, 'GET', `${url}/invitations`)).json().results, [])
  })

  t.test('limits: waiting invitations, seats, members already', async t => {
    const { url, owner, member } = await team(app)
    errorsOf(t, await invite(owner, url, member.email), 409, 'already a member')
    for (let each = 0; each < 3; each += 1) t.equal((await invite(owner, url, freshEmail())).statusCode, 201)
    errorsOf(t, await invite(owner, url, freshEmail()), 409, 'too many')
    await adminCall(app, 'PUT', `/admin${url}`, { maxMembers: 3 })
    errorsOf(t, await invite(owner, url, freshEmail()), 409, 'no seat')
  })

  t.test(
    'D7: a user and an organization mail a number of strangers a day, whatever is revoked between',
    async t => {
      const few = await build(t, { clock: clock.now, env: { ORGANIZATION_DAILY_INVITATIONS: '4' } })
      const send = (by: Caller, url: string, email = freshEmail()) =>
        call(few, by, 'POST', `${url}/invitations`, { email, roles: ['member'] })
      const revoke = async (by: Caller, url: string, sent: Awaited<ReturnType<typeof send>>) =>
        call(few, by, 'DELETE', `${url}/invitations/${sent.json().id}`)
      const { url, owner, admin } = await team(few)
      const created = await Promise.all(Array.from({ length: 9 }, () => send(owner, url)))
      t.same(created.map(({ statusCode }) => statusCode).sort(), [
        ...Array(4).fill(201),
        ...Array(5).fill(429),
      ])
      const refused = created.find(({ statusCode }) => statusCode === 429)
      t.equal(refused?.headers['retry-after'], '3600')
      t.same(refused?.json(), { errors: { global: ['Too many requests'] } })
      for (const sent of created.filter(({ statusCode }) => statusCode === 201))
        t.equal((await revoke(owner, url, sent)).statusCode, 204)
      errorsOf(t, await send(owner, url), 429, 'revoked ones count')
      const other = (await call(few, owner, 'POST', '/organizations', { name: 'Another' })).json()
      errorsOf(t, await send(owner, `/organizations/${other.id}`), 429, 'in all organizations')
      errorsOf(t, await send(admin, url), 429, 'the organization has sent as many')

      const second = await team(few)
      const email = freshEmail()
      for (const by of [second.owner, second.admin, second.owner, second.admin])
        t.equal((await send(by, second.url, email)).statusCode, 201, 'sends again')
      const both = await Promise.all([send(second.owner, second.url), send(second.admin, second.url)])
      t.same(
        both.map(({ statusCode }) => statusCode),
        [429, 429],
        'of both together, and mails sent again',
      )
      clock.advance(DAY)
      t.equal((await send(second.owner, second.url)).statusCode, 201, 'a day later')
    },
  )

  t.test('inviting needs a confirmed e-mail', async t => {
    const ann = await signUp(app)
    const { id } = (await call(app, ann, 'POST', '/organizations', { name: 'Unconfirmed' })).json()
    errorsOf(t, await invite(ann, `/organizations/${id}`, freshEmail()), 403)
  })

  t.test('R1: an address with and without an account: same responses', async t => {
    const { url, owner } = await team(app)
    const known = await confirmedUser(app)
    const ofRequest = ['content-length', 'date', 'x-request-id']
    const responseTo = async (email: string) => {
      const { statusCode, headers, body } = await invite(owner, url, email)
      const { id, createdAt, expiresAt } = JSON.parse(body)
      let text = body
      for (const [name, value] of Object.entries({ id, email, createdAt, expiresAt }))
        text = text.replace(value, name)
      const constant = Object.entries(headers).filter(([name]) => !ofRequest.includes(name))
      return { statusCode, headers: constant, names: Object.keys(headers), text }
    }
    t.strictSame(await responseTo(known.email), await responseTo(freshEmail()))
  })

  t.test('L18, S10: with the account go memberships and invitations, and nobody inherits them', async t => {
    const { url, owner, organization } = await team(app)
    const ben = await confirmedUser(app)
    await invite(owner, url, ben.email)
    await accept(ben, await token(ben.email))
    const other = await team(app)
    await invite(other.owner, other.url, ben.email)
    const second = await token(ben.email, 2)
    const deleted = await call(app, ben, 'DELETE', '/account', { password: PASSWORD })
    t.equal(deleted.statusCode, 204)
    t.equal((await app.inject({ url, headers: bearer(ben.token) })).statusCode, 401)
    const again = await confirmedUser(app, { email: ben.email })
    t.strictSame((await call(app, again, 'GET', '/organizations')).json().results, [])
    errorsOf(t, await call(app, again, 'GET', url), 404)
    errorsOf(t, await accept(again, second), 400)
    const members = (await adminCall(app, 'GET', `/admin/organizations/${organization.id}/members`)).json()
    t.equal(members.results.length, 3)
  })
})
