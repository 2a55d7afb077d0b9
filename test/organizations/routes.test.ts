/** The routes of organizations and members: who may do what (docs/organizations.md). */
import t from 'tap'
import { createKey as createAdminKey } from '../support/admin-keys.ts'
import { createKey } from '../support/api-keys.ts'
import { bearer, confirmedUser, freshEmail, PASSWORD, signUp, updateUser } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsOf } from '../support/error-response.ts'
import { readLog } from '../support/event-log.ts'
import { mailbox } from '../support/mailbox.ts'
import { addMember, adminCall, call, organizationOf, team } from '../support/organizations.ts'

const UNKNOWN = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'

await onEveryEngine(t, async (t, { build }) => {
  const app = await build(t, {
    env: { ORGANIZATION_ROLES: 'billing,auditor', ORGANIZATION_MAX_CREATED: '3' },
  })

  t.test('the creator of an organization is its owner, and finds it', async t => {
    const ann = await signUp(app)
    const created = await call(app, ann, 'POST', '/organizations', { name: '  Müller & Söhne  ' })
    t.equal(created.statusCode, 201)
    const { id, createdAt, updatedAt, ...rest } = created.json()
    t.strictSame(rest, { name: 'Müller & Söhne', slug: 'muller-sohne', maxMembers: null })
    const { results, nextCursor } = (await call(app, ann, 'GET', '/organizations')).json()
    t.equal(nextCursor, null)
    t.strictSame(results, [{ id, ...rest, createdAt, updatedAt, roles: ['owner'], joinedAt: createdAt }])
    t.strictSame((await call(app, ann, 'GET', `/organizations/${id}`)).json(), results[0])
    const second = (await call(app, ann, 'POST', '/organizations', { name: 'Müller & Söhne' })).json()
    t.match(second.slug, /^muller-sohne-[a-z2-9]{6}$/, 'a slug that is taken gets a random end')
    t.match((await organizationOf(app, ann, { name: '株式会社' })).slug, /^team-[a-z2-9]{8}$/)
    errorsOf(t, await call(app, ann, 'POST', '/organizations', { name: 'Fourth' }), 409)
  })

  t.test(
    'bad input is 400: slugs that are reserved or look like others, names that are too long',
    async t => {
      const ann = await signUp(app)
      const post = (payload: object) => call(app, ann, 'POST', '/organizations', payload)
      const slugs = [
        'admin',
        'security',
        'organizations',
        'ab',
        'a'.repeat(64),
        '-abc',
        'abc-',
        'a--b',
        'a_b',
      ]
      const alike = ['gооgle', 'café', 'ＡＢＣ', 'a.b', 'a b', UNKNOWN, 'ab\u0000c', '\ud800abc', 'ﷺﷺﷺ']
      for (const slug of [...slugs, ...alike])
        t.strictSame(Object.keys(errorsOf(t, await post({ name: 'Team', slug }), 400, slug)), ['slug'], slug)
      for (const name of ['', '   ', 'n'.repeat(101), 'a\u0000b', '\u202eabc', 'a\nb', 5, null])
        t.strictSame(Object.keys(errorsOf(t, await post({ name }), 400)), ['name'], String(name))
      const noLink = { name: ['must not contain "://" or "www."'] }
      for (const name of ['Win at HTTPS://evil.example', 'WwW.evil.example', 'x://y'])
        t.strictSame(errorsOf(t, await post({ name }), 400, name), noLink)
      errorsOf(t, await post({ name: 'Team', maxMembers: 5 }), 400)
      t.equal((await call(app, ann, 'GET', '/organizations')).json().results.length, 0)
    },
  )

  t.test('a slug has one organization (409), in any letter case', async t => {
    const { owner, organization } = await team(app)
    const other = await signUp(app)
    const payload = { name: 'Other', slug: organization.slug.toUpperCase() }
    t.strictSame(errorsOf(t, await call(app, other, 'POST', '/organizations', payload), 409), {
      slug: ['is already taken'],
    })
    const mine = await organizationOf(app, owner)
    const change = await call(app, owner, 'PUT', `/organizations/${mine.id}`, { slug: organization.slug })
    errorsOf(t, change, 409)
  })

  t.test('owners change and delete it; a change that changes nothing is no event', async t => {
    const { url, owner, admin, member, organization } = await team(app)
    for (const user of [admin, member]) {
      errorsOf(t, await call(app, user, 'PUT', url, { name: 'Mine' }), 403)
      errorsOf(t, await call(app, user, 'DELETE', url), 403)
      t.equal((await call(app, user, 'GET', url)).statusCode, 200)
    }
    const changed = await call(app, owner, 'PUT', url, { name: 'Renamed' })
    t.equal(changed.statusCode, 200)
    t.ok(changed.json().updatedAt > changed.json().createdAt)
    t.strictSame((await call(app, owner, 'PUT', url, { name: 'Renamed' })).json(), changed.json())
    errorsOf(t, await call(app, owner, 'PUT', url, { maxMembers: 3 }), 400)
    errorsOf(t, await call(app, owner, 'PUT', url, { name: 'www.evil.example' }), 400)
    t.equal((await call(app, owner, 'DELETE', url)).statusCode, 204)
    for (const user of [owner, admin, member]) errorsOf(t, await call(app, user, 'GET', url), 404)
    errorsOf(t, await adminCall(app, 'GET', `/admin${url}`), 404)
    const events = (await readLog(app)).filter(({ details }) => details?.organization === organization.id)
    t.strictSame(
      events.map(({ type, userId, actor }) => [type, userId, actor.type]),
      [
        ['organization.created', owner.id, 'user'],
        ['organization.member-added', owner.id, 'user'],
        ['organization.member-added', admin.id, 'adminKey'],
        ['organization.member-added', member.id, 'adminKey'],
        ['organization.changed', owner.id, 'user'],
        ['organization.deleted', owner.id, 'user'],
      ],
    )
    const reused = await call(app, member, 'POST', '/organizations', { name: 'A', slug: organization.slug })
    t.equal(reused.statusCode, 201, 'its slug is free')
    t.equal((await mailbox(app).to(admin.email, 'organizationDeleted')).length, 1)
  })

  t.test(
    'members are mailed about invitations, members who leave and deletion, but not who acts',
    async t => {
      const mailing = await build(t)
      const mails = mailbox(mailing)
      const { url, owner, admin, member } = await team(mailing)
      const [disabled, unconfirmed, german] = [
        await confirmedUser(mailing),
        await signUp(mailing),
        await confirmedUser(mailing),
      ]
      for (const { id } of [disabled, unconfirmed])
        await adminCall(mailing, 'PUT', `/admin${url}/members/${id}`, { roles: ['admin'] })
      await updateUser(mailing, disabled.id, { disabled: true })
      await call(mailing, admin, 'POST', `${url}/invitations`, { email: german.email, roles: ['member'] })
      const token = await mails.token(german.email, 'organizationInvitation')
      t.equal((await call(mailing, german, 'POST', '/account/invitations/accept', { token })).statusCode, 200)
      await call(mailing, german, 'PUT', '/account', { locale: 'de' })
      t.equal((await call(mailing, member, 'DELETE', `${url}/members/${member.id}`)).statusCode, 204)
      t.equal((await call(mailing, owner, 'DELETE', url)).statusCode, 204)
      const accepted = 'Your invitation is accepted'
      const left = 'A member has left your organization'
      const deleted = 'An organization was deleted'
      const got = async ({ email }: { readonly email: string }) =>
        (await mails.final(email)).filter(subject => [accepted, left, deleted].includes(subject)).sort()
      t.same(await got(owner), [left])
      t.same(await got(admin), [left, deleted, accepted])
      for (const user of [member, disabled, unconfirmed, german]) t.same(await got(user), [])
      t.ok((await mails.final(german.email)).includes('Eine Organisation wurde gelöscht'))
    },
  )

  t.test('deleting needs a recent proof of identity, and no API key does', async t => {
    const { url, owner } = await team(app)
    const { token } = await createKey(app, owner.token, {
      scopes: ['organizations:read', 'organizations:write'],
    })
    t.equal((await app.inject({ url, headers: bearer(token) })).statusCode, 200)
    errorsOf(t, await app.inject({ method: 'DELETE', url, headers: bearer(token) }), 403)
  })

  t.test('members see names, owners and admins e-mails too', async t => {
    const { url, owner, admin, member } = await team(app)
    await call(app, owner, 'PUT', '/account', { firstName: 'Ann', lastName: 'Lee' })
    const listed = async (user: typeof owner) => (await call(app, user, 'GET', `${url}/members`)).json()
    const { results, nextCursor } = await listed(admin)
    t.equal(nextCursor, null)
    t.strictSame(
      results.map(({ userId, email, roles }: Record<string, unknown>) => [userId, email, roles]),
      [
        [owner.id, owner.email, ['owner']],
        [admin.id, admin.email, ['admin']],
        [member.id, member.email, ['member']],
      ],
    )
    t.strictSame([results[0].firstName, results[0].lastName], ['Ann', 'Lee'])
    t.strictSame(
      (await listed(member)).results.map(({ email }: { email: string | null }) => email),
      [null, null, null],
    )
    t.notMatch(JSON.stringify(await listed(member)), /@/)
  })

  t.test('lists have pages, whose cursors are their own (K6)', async t => {
    const { url, owner, organization } = await team(app)
    const pages: string[][] = []
    let cursor = ''
    for (;;) {
      const page = (await call(app, owner, 'GET', `${url}/members?limit=2${cursor}`)).json()
      pages.push(page.results.map(({ userId }: { userId: string }) => userId))
      if (page.nextCursor === null) break
      cursor = `&cursor=${page.nextCursor}`
    }
    t.strictSame(
      pages.map(({ length }) => length),
      [2, 1],
    )
    await organizationOf(app, owner)
    const mine = (await call(app, owner, 'GET', '/organizations?limit=1')).json()
    t.equal(mine.results[0].id, organization.id)
    const rest = (await call(app, owner, 'GET', `/organizations?limit=1&cursor=${mine.nextCursor}`)).json()
    t.equal(rest.results.length, 1)
    t.equal(rest.nextCursor, null)
    const cursors = ['x', `${'A'.repeat(4_000)}`, Buffer.from("' OR 1=1 --").toString('base64url'), 'W10']
    const lists = ['/organizations', `${url}/members`, `${url}/invitations`]
    for (const list of lists)
      for (const each of cursors)
        errorsOf(
          t,
          await call(app, owner, 'GET', `${list}?cursor=${each}`),
          400,
          `${list} ${each.slice(0, 20)}`,
        )
    for (const each of cursors)
      for (const query of ['', 'name=Team&', 'slug=team&'])
        errorsOf(t, await adminCall(app, 'GET', `/admin/organizations?${query}cursor=${each}`), 400)
    const byName = (await adminCall(app, 'GET', '/admin/organizations?name=Team&limit=1')).json().nextCursor
    errorsOf(
      t,
      await adminCall(app, 'GET', `/admin/organizations?slug=team&cursor=${byName}`),
      400,
      'foreign',
    )
  })

  t.test('admins manage members below them: never owners and admins, never to these roles', async t => {
    const { url, owner, admin, member } = await team(app)
    const [other, second] = [await confirmedUser(app), await confirmedUser(app)]
    const id = url.split('/')[2] ?? ''
    await addMember(app, id, other.id, ['admin', 'billing'])
    await addMember(app, id, second.id)
    const put = (user: typeof owner, userId: string, roles: unknown) =>
      call(app, user, 'PUT', `${url}/members/${userId}`, { roles })
    t.strictSame((await put(admin, member.id, ['billing', 'auditor'])).json().roles, ['auditor', 'billing'])
    for (const roles of [['admin'], ['owner'], ['billing', 'admin']])
      errorsOf(t, await put(admin, member.id, roles), 403, roles.join())
    for (const { id: above } of [owner, other, admin]) errorsOf(t, await put(admin, above, ['member']), 403)
    const remove = (user: typeof owner, userId: string) =>
      call(app, user, 'DELETE', `${url}/members/${userId}`)
    for (const { id: above } of [owner, other]) errorsOf(t, await remove(admin, above), 403)
    errorsOf(t, await put(member, second.id, ['member']), 403)
    errorsOf(t, await remove(member, second.id), 403)
    t.equal((await remove(admin, second.id)).statusCode, 204)
    t.equal((await mailbox(app).to(second.email, 'organizationMemberRemoved')).length, 1)
    t.equal((await mailbox(app).to(member.email, 'organizationRolesChanged')).length, 1)
    t.equal((await put(owner, admin.id, ['member'])).statusCode, 200)
    errorsOf(t, await put(admin, member.id, ['member']), 403, 'at the next request')
    t.equal((await remove(other, other.id)).statusCode, 204, 'leaving')
    errorsOf(t, await call(app, other, 'GET', url), 404)
  })

  t.test('G4: a role that the service does not know is 400, and so is none', async t => {
    const { url, owner, member } = await team(app)
    const put = (roles: unknown) => call(app, owner, 'PUT', `${url}/members/${member.id}`, { roles })
    for (const roles of [['unheard-of'], [], ['member', 'member'], 'admin', null, [{}], ['Owner']])
      errorsOf(t, await put(roles), 400, JSON.stringify(roles))
    const invitation = { email: freshEmail(), roles: ['unheard-of'] }
    errorsOf(t, await call(app, owner, 'POST', `${url}/invitations`, invitation), 400)
    errorsOf(t, await adminCall(app, 'PUT', `/admin${url}/members/${member.id}`, { roles: ['x'] }), 400)
  })

  t.test('the last owner stays', async t => {
    const { url, owner, admin } = await team(app)
    errorsOf(t, await call(app, owner, 'DELETE', `${url}/members/${owner.id}`), 409)
    errorsOf(t, await call(app, owner, 'PUT', `${url}/members/${owner.id}`, { roles: ['admin'] }), 409)
    errorsOf(t, await adminCall(app, 'DELETE', `/admin${url}/members/${owner.id}`), 409)
    t.equal(
      (await call(app, owner, 'PUT', `${url}/members/${admin.id}`, { roles: ['owner'] })).statusCode,
      200,
    )
    t.equal((await call(app, owner, 'DELETE', `${url}/members/${owner.id}`)).statusCode, 204)
  })

  t.test('a disabled owner is none: the last enabled one stays', async t => {
    const { url, owner, admin, member } = await team(app)
    const put = (userId: string, roles: readonly string[]) =>
      call(app, owner, 'PUT', `${url}/members/${userId}`, { roles })
    t.equal((await put(admin.id, ['owner'])).statusCode, 200)
    await updateUser(app, admin.id, { disabled: true })
    errorsOf(t, await call(app, owner, 'DELETE', `${url}/members/${owner.id}`), 409)
    errorsOf(t, await put(owner.id, ['member']), 409)
    errorsOf(t, await call(app, owner, 'DELETE', '/account', { password: PASSWORD }), 409)
    t.equal((await put(admin.id, ['member'])).statusCode, 200, 'the disabled one goes')
    t.equal((await put(admin.id, ['owner'])).statusCode, 200)
    t.equal((await put(member.id, ['owner'])).statusCode, 200)
    t.equal((await call(app, owner, 'DELETE', `${url}/members/${owner.id}`)).statusCode, 204)
  })

  t.test('G6: members of another organization, unknown and malformed ids get the same 404', async t => {
    const mine = await team(app)
    const other = await team(app)
    const { owner } = mine
    const paths = ['', '/members', `/members/${other.member.id}`, '/invitations', `/invitations/${UNKNOWN}`]
    const bodies = new Set<string>()
    for (const id of [other.organization.id, UNKNOWN, 'x', '%00', "'%20OR%201=1", other.organization.slug])
      for (const path of paths)
        for (const method of ['GET', 'PUT', 'DELETE', 'POST'] as const) {
          const payload = method === 'GET' || method === 'DELETE' ? undefined : { roles: 'not even valid' }
          const response = await call(app, owner, method, `/organizations/${id}${path}`, payload)
          if (response.statusCode === 405) continue
          errorsOf(t, response, 404, `${method} ${id}${path}`)
          bodies.add(response.body)
        }
    t.equal(bodies.size, 1)
    const foreign = await call(app, owner, 'PUT', `${mine.url}/members/${other.member.id}`, {
      roles: ['member'],
    })
    const unknown = await call(app, owner, 'PUT', `${mine.url}/members/${UNKNOWN}`, { roles: ['member'] })
    errorsOf(t, foreign, 404)
    t.equal(foreign.body, unknown.body)
    errorsOf(t, await call(app, owner, 'DELETE', `${mine.url}/members/${other.member.id}`), 404)
  })

  t.test('administrators set seats, add members, change and delete', async t => {
    const { url, organization, owner, admin, member } = await team(app)
    const at = `/admin${url}`
    errorsOf(t, await adminCall(app, 'PUT', at, { maxMembers: 0 }), 400)
    errorsOf(t, await adminCall(app, 'PUT', at, { name: 'www.evil.example' }), 400)
    t.equal((await adminCall(app, 'PUT', at, { maxMembers: 3 })).json().maxMembers, 3)
    const ben = await signUp(app)
    const put = (userId: string, roles: readonly string[]) =>
      adminCall(app, 'PUT', `${at}/members/${userId}`, { roles })
    errorsOf(t, await put(ben.id, ['member']), 409)
    t.equal((await put(member.id, ['admin'])).statusCode, 200)
    t.equal((await adminCall(app, 'PUT', at, { maxMembers: null })).json().maxMembers, null)
    t.equal((await put(ben.id, ['billing'])).statusCode, 201)
    errorsOf(t, await put(UNKNOWN, ['member']), 404)
    t.equal((await mailbox(app).to(ben.email, 'organizationMemberAdded')).length, 1)
    const { results } = (await adminCall(app, 'GET', `${at}/members`)).json()
    t.strictSame(
      results.map(({ userId }: { userId: string }) => userId),
      [owner.id, admin.id, member.id, ben.id],
    )
    const ofBen = (await adminCall(app, 'GET', `/admin/users/${ben.id}/organizations`)).json().results
    t.strictSame(
      ofBen.map(({ id, roles }: { id: string; roles: string[] }) => [id, roles]),
      [[organization.id, ['billing']]],
    )
    errorsOf(t, await adminCall(app, 'GET', `/admin/users/${UNKNOWN}/organizations`), 404)
    t.equal((await adminCall(app, 'DELETE', `${at}/members/${ben.id}`)).statusCode, 204)
    t.equal((await adminCall(app, 'DELETE', at)).statusCode, 204)
    errorsOf(t, await adminCall(app, 'DELETE', at), 404)
    errorsOf(t, await adminCall(app, 'GET', `${at}/members`), 404)
    errorsOf(t, await call(app, owner, 'GET', url), 404)
  })

  t.test('administrators find organizations by the start of the name or slug', async t => {
    const ann = await signUp(app)
    const [first, second] = [
      await organizationOf(app, ann, { name: 'Straße One', slug: `zq-${process.pid}-one` }),
      await organizationOf(app, ann, { name: 'STRASSE two', slug: `zq-${process.pid}-two` }),
    ]
    const found = async (query: string) =>
      (await adminCall(app, 'GET', `/admin/organizations?${query}`))
        .json()
        .results.map(({ id }: { id: string }) => id)
    t.strictSame(await found('name=strasse'), [first.id, second.id])
    t.strictSame(await found(`slug=zq-${process.pid}`), [first.id, second.id])
    t.strictSame(await found(`slug=zq-${process.pid}-t`), [second.id])
    t.strictSame(await found('name=%25'), [])
    const both = await adminCall(app, 'GET', '/admin/organizations?name=strasse&slug=zq')
    t.strictSame(errorsOf(t, both, 400), { slug: ['cannot be combined with name: give one of the two'] })
    t.ok((await found('limit=100')).includes(first.id))
  })

  t.test('G8: scopes do not add up: each route needs its own', async t => {
    const { url, member } = await team(app)
    const reader = await createAdminKey(app, ['organizations:read'])
    const { headers } = reader
    t.equal((await app.inject({ url: `/admin${url}`, headers })).statusCode, 200)
    const payload = { roles: ['owner'] }
    const path = `/admin${url}/members/${member.id}`
    errorsOf(t, await app.inject({ method: 'PUT', url: path, headers, payload }), 403)
    errorsOf(t, await app.inject({ method: 'DELETE', url: `/admin${url}`, headers }), 403)
    errorsOf(t, await app.inject({ url: `/admin/users/${member.id}`, headers }), 403)
    const users = await createAdminKey(app, ['users:read', 'users:write', 'users:identity'])
    const others = users.headers
    errorsOf(t, await app.inject({ url: `/admin/users/${member.id}/organizations`, headers: others }), 403)
    errorsOf(t, await app.inject({ method: 'PUT', url: path, headers: others, payload }), 403)
    const { token } = await createKey(app, member.token, { scopes: ['organizations:read'] })
    errorsOf(
      t,
      await app.inject({ method: 'DELETE', url: `${url}/members/${member.id}`, headers: bearer(token) }),
      403,
    )
  })

  t.test('an only owner who deletes the account is refused while there are other members', async t => {
    const { url, owner, organization } = await team(app)
    errorsOf(t, await call(app, owner, 'DELETE', '/account', { password: PASSWORD }), 409)
    t.equal((await call(app, owner, 'GET', url)).statusCode, 200)
    const alone = await confirmedUser(app)
    const empty = await organizationOf(app, alone)
    t.equal((await call(app, alone, 'DELETE', '/account', { password: PASSWORD })).statusCode, 204)
    errorsOf(t, await adminCall(app, 'GET', `/admin/organizations/${empty.id}`), 404)
    t.equal((await adminCall(app, 'GET', `/admin/organizations/${organization.id}`)).statusCode, 200)
  })

  t.test(
    'when others remove the only owner, the admin who joined first becomes owner, else a member',
    async t => {
      const { url, owner, admin, member } = await team(app)
      t.equal((await adminCall(app, 'DELETE', `/admin/users/${owner.id}`)).statusCode, 204)
      const rolesOf = async () =>
        (await adminCall(app, 'GET', `/admin${url}/members`))
          .json()
          .results.map(({ userId, roles }: { userId: string; roles: string[] }) => [userId, roles])
      t.strictSame(await rolesOf(), [
        [admin.id, ['admin', 'owner']],
        [member.id, ['member']],
      ])
      t.equal((await call(app, admin, 'PUT', url, { name: 'Mine now' })).statusCode, 200)
      t.equal((await mailbox(app).to(admin.email, 'organizationOwnershipPassed')).length, 1)
      t.equal((await adminCall(app, 'DELETE', `/admin/users/${admin.id}`)).statusCode, 204)
      t.strictSame(await rolesOf(), [[member.id, ['member', 'owner']]])
      t.equal((await adminCall(app, 'DELETE', `/admin/users/${member.id}`)).statusCode, 204)
      errorsOf(t, await adminCall(app, 'GET', `/admin${url}`), 404)
    },
  )

  t.test('a disabled user becomes owner only if there is nobody else', async t => {
    const { url, owner, admin, member } = await team(app)
    await updateUser(app, admin.id, { disabled: true })
    await adminCall(app, 'DELETE', `/admin/users/${owner.id}`)
    t.equal((await call(app, member, 'PUT', url, { name: 'Mine now' })).statusCode, 200)
    await adminCall(app, 'DELETE', `/admin/users/${member.id}`)
    t.match((await adminCall(app, 'GET', `/admin${url}/members`)).json().results, [
      { roles: ['admin', 'owner'] },
    ])
  })

  t.test('a removed owner leaves the organization to an enabled member before a disabled owner', async t => {
    const { url, owner, admin, member } = await team(app)
    await call(app, owner, 'PUT', `${url}/members/${admin.id}`, { roles: ['owner'] })
    await updateUser(app, admin.id, { disabled: true })
    await adminCall(app, 'DELETE', `/admin/users/${owner.id}`)
    const roles = async () =>
      (await adminCall(app, 'GET', `/admin${url}/members`))
        .json()
        .results.map(({ userId, roles }: { userId: string; roles: string[] }) => [userId, roles])
    t.strictSame(await roles(), [
      [admin.id, ['owner']],
      [member.id, ['member', 'owner']],
    ])
    await adminCall(app, 'DELETE', `/admin/users/${member.id}`)
    t.strictSame(await roles(), [[admin.id, ['owner']]], 'nobody else is left')
  })
})
