/** Named administrators (docs/console.md): users who sign in to the console with their account, and what no key may do to them. */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createKey } from '../support/admin-keys.ts'
import { addTotp, ENCRYPTION_KEY, signInWith } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  freshEmail,
  manualClock,
  PASSWORD,
  signUp,
  updateUser,
} from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { FormClient } from '../support/form-client.ts'

const ROLE = 'support'
const SCOPES = [
  'users:read',
  'users:write',
  'users:identity',
  'users:impersonate',
  'users:import',
  'events:read',
  'keys:write',
]
const ENV = { CONSOLE: 'on', ENCRYPTION_KEY, CONSOLE_ROLE: ROLE, CONSOLE_SCOPES: SCOPES.join(', ') }

/** A user with the role, and a session with two factors. */
const administrator = async (app: FastifyInstance) => {
  const { id, email, token: first } = await signUp(app)
  const authenticator = await addTotp(app, first)
  const updated = await updateUser(app, id, { roles: [ROLE] })
  if (updated.statusCode !== 200) throw new Error(updated.body)
  const { accessToken: token } = (await signInWith(app, email, authenticator.code(1))).json()
  return { id, email, token: token as string, authenticator }
}

const browserWith = (app: FastifyInstance, token: string): FormClient =>
  new FormClient(app, {
    changeCookies: header => [header, `ACCESS_TOKEN=${token}`].filter(Boolean).join('; '),
  })

const openConsole = async (app: FastifyInstance, token: string): Promise<FormClient> => {
  const client = browserWith(app, token)
  await client.open('/console/sign-in')
  await client.submit('sign-in/account')
  return client
}

const latest = async (app: FastifyInstance, query: string) =>
  (await app.inject({ url: `/admin/events?limit=1&${query}`, headers: asAdmin })).json().results[0]

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock(Date.now())
  const app = await build(t, { env: ENV, clock: clock.now })

  t.test('an administrator signs in with the account, and events name the person', async t => {
    const person = await administrator(app)
    const client = await openConsole(app, person.token)
    t.equal(client.path, '/console')
    t.match(client.page, person.email)
    t.notMatch(client.page, 'console/webhooks')
    const by = { type: 'administrator', id: person.id }
    t.match(await latest(app, 'type=console.signed-in'), { actor: by })
    const { id, token } = await signUp(app)
    await client.open(`/console/users/${id}/disable`)
    await client.submit('disable')
    t.match(client.page, 'The user is disabled.')
    t.match(await latest(app, `userId=${id}`), { type: 'user.disabled', actor: by, ip: '127.0.0.1' })
    await updateUser(app, id, { disabled: false })
    t.equal(await accountStatus(app, token), 401)
    await client.open('/console/events')
    t.match(client.page, new RegExp(`${person.email}</bdi></strong> disabled`))
  })

  t.test('the sign-in leads back to the page that was asked for, from the account too', async t => {
    const person = await administrator(app)
    const client = browserWith(app, person.token)
    await client.open('/console/users?search=hen')
    t.equal(client.path, '/console/sign-in')
    await client.submit('sign-in/account')
    t.equal(client.path, '/console/users')
    t.match(client.page, 'value="hen"')
    const stranger = new FormClient(app)
    await stranger.open('/console/users?search=hen')
    await stranger.submit('sign-in/account')
    t.equal(stranger.path, '/sign-in')
    await stranger.submit('sign-in', { email: person.email, password: PASSWORD })
    await stranger.submit('sign-in/code', { code: person.authenticator.recoveryCodes[0] ?? '' })
    t.equal(stranger.path, '/console/sign-in')
    await stranger.submit('sign-in/account')
    t.equal(stranger.path, '/console/users')
  })

  t.test('users do not see who it was', async t => {
    const person = await administrator(app)
    const client = await openConsole(app, person.token)
    const { id, token } = await signUp(app)
    await client.open(`/console/users/${id}/change`)
    await client.submit('change', { firstName: 'Ann' })
    const own = (await app.inject({ url: '/account/events', headers: bearer(token) })).json().results[0]
    t.match(own, { type: 'user.changed', actor: { type: 'administrator', id: null }, ip: null })
  })

  t.test(
    'others are refused: without a session, the role, or a second factor, or as somebody else',
    async t => {
      const anonymous = new FormClient(app)
      await anonymous.open('/console/sign-in')
      await anonymous.submit('sign-in/account')
      t.equal(anonymous.path, '/sign-in')
      const user = await signUp(app)
      const withoutRole = await openConsole(app, user.token)
      t.equal(withoutRole.status, 403)
      t.match(withoutRole.page, 'does not administer this service')
      await updateUser(app, user.id, { roles: [ROLE] })
      const withoutFactor = await openConsole(app, user.token)
      t.equal(withoutFactor.status, 403)
      t.match(withoutFactor.page, 'Add a passkey or an authenticator app')
      const { id } = await administrator(app)
      const { accessToken } = (
        await app.inject({ method: 'POST', url: `/admin/users/${id}/impersonate`, headers: asAdmin })
      ).json()
      t.equal((await openConsole(app, accessToken)).status, 403, 'impersonated')
      t.equal(withoutFactor.cookie('gatehouse-console'), undefined)
    },
  )

  t.test('the console ends with the role, the factors, the session, and the account', async t => {
    const endings: Readonly<Record<string, (person: { id: string; token: string }) => Promise<unknown>>> = {
      role: ({ id }) => updateUser(app, id, { roles: [] }),
      factors: ({ id }) =>
        app.inject({ method: 'DELETE', url: `/admin/users/${id}/factors`, headers: asAdmin }),
      session: ({ token }) =>
        app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) }),
      sessions: ({ id }) =>
        app.inject({ method: 'DELETE', url: `/admin/users/${id}/sessions`, headers: asAdmin }),
      disabled: ({ id }) => updateUser(app, id, { disabled: true }),
      account: ({ id }) => app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin }),
    }
    for (const [name, end] of Object.entries(endings)) {
      const person = await administrator(app)
      const client = await openConsole(app, person.token)
      await client.open('/console/users')
      t.equal(client.path, '/console/users', name)
      await end(person)
      await client.open('/console/users')
      t.equal(client.path, '/console/sign-in', `${name} has ended`)
    }
  })

  t.test(
    'the cookie of the console alone, or with the session of another administrator, opens nothing',
    async t => {
      const [one, other] = [await administrator(app), await administrator(app)]
      const client = await openConsole(app, one.token)
      const secret = client.cookie('gatehouse-console')
      for (const cookie of [
        `gatehouse-console=${secret}`,
        `gatehouse-console=${secret}; ACCESS_TOKEN=${other.token}`,
      ]) {
        const again = await openConsole(app, one.token)
        const { statusCode } = await app.inject({
          url: '/console/users',
          headers: { cookie: cookie.replace(String(secret), String(again.cookie('gatehouse-console'))) },
        })
        t.equal(statusCode, 303)
      }
    },
  )

  t.test('what gives access needs a recent proof of identity', async t => {
    const person = await administrator(app)
    const client = await openConsole(app, person.token)
    const { id } = await signUp(app)
    await client.open(`/console/users/${id}/roles`)
    t.notMatch(client.page, /name="(?:code|adminKey)"/)
    await client.submit('roles', { roles: 'editor' })
    t.equal(client.path, `/console/users/${id}`)
    clock.advance(660_000)
    await client.open(`/console/users/${id}/roles`)
    t.match(client.page, 'name="code"')
    await client.submit('roles', { roles: 'editor owner' })
    t.equal(client.status, 403)
    await client.submit('roles', { roles: 'editor owner', code: '000000' })
    t.equal(client.status, 400)
    t.match(client.page, 'aria-invalid="true"')
    await client.submit('roles', { roles: 'editor owner', code: person.authenticator.code() })
    t.equal(client.path, `/console/users/${id}`)
    const { roles } = (await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json()
    t.strictSame(roles, ['editor', 'owner'])
  })

  t.test('an impersonated session ends with what lets the administrator impersonate', async t => {
    const endings: Readonly<Record<string, (person: { id: string; token: string }) => Promise<unknown>>> = {
      role: ({ id }) => updateUser(app, id, { roles: ['editor'] }),
      'sign-out': ({ token }) =>
        app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) }),
      sessions: ({ id }) =>
        app.inject({ method: 'DELETE', url: `/admin/users/${id}/sessions`, headers: asAdmin }),
      account: ({ id }) => updateUser(app, id, { disabled: true }),
    }
    for (const [name, end] of Object.entries(endings)) {
      const person = await administrator(app)
      const client = await openConsole(app, person.token)
      const { id } = await signUp(app)
      await client.open(`/console/users/${id}/impersonate`)
      await client.submit('impersonate')
      const token = /<code>(eyJ[^<]*)<\/code>/.exec(client.page)?.[1] ?? ''
      t.equal(await accountStatus(app, token), 200)
      await end(person)
      t.equal(await accountStatus(app, token), 401, name)
    }
  })

  t.test(
    'no impersonated session is left by a request that the end of the administrator overtakes',
    async t => {
      const left: number[] = []
      for (let round = 0; round < 10; round += 1) {
        const person = await administrator(app)
        const client = await openConsole(app, person.token)
        const { id } = await signUp(app)
        await client.open(`/console/users/${id}/impersonate`)
        const end = () =>
          round % 2 === 0
            ? app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(person.token) })
            : updateUser(app, person.id, { roles: [] })
        await Promise.all([client.submit('impersonate'), end()])
        const token = /<code>(eyJ[^<]*)<\/code>/.exec(client.page)?.[1]
        left.push(token === undefined ? 401 : await accountStatus(app, token))
      }
      t.strictSame(left, Array(10).fill(401))
    },
  )

  t.test('no key raises itself: each scope of the role is needed, by every route', async t => {
    const holder = await administrator(app)
    const { id: other } = await signUp(app)
    const call = (headers: object, method: 'PUT' | 'POST' | 'DELETE', url: string, payload?: object) =>
      app.inject({ method, url, headers: { ...headers }, ...(payload !== undefined && { payload }) })
    const importLine = async (headers: object): Promise<number> => {
      const { body, statusCode } = await app.inject({
        method: 'POST',
        url: '/admin/users/import',
        headers: { ...headers, 'content-type': 'application/x-ndjson' },
        payload: `${JSON.stringify({ email: freshEmail(), roles: [ROLE] })}\n`,
      })
      if (statusCode !== 200) return statusCode
      return JSON.parse(body.split('\n')[0] ?? '').status === 'failed' ? 403 : 200
    }
    const attempts: Readonly<Record<string, (headers: object) => Promise<number>>> = {
      grant: async headers =>
        (await call(headers, 'PUT', `/admin/users/${other}`, { roles: [ROLE] })).statusCode,
      create: async headers =>
        (await call(headers, 'POST', '/admin/users', { email: freshEmail(), roles: [ROLE] })).statusCode,
      email: async headers =>
        (await call(headers, 'PUT', `/admin/users/${holder.id}`, { email: freshEmail() })).statusCode,
      confirm: async headers =>
        (await call(headers, 'PUT', `/admin/users/${holder.id}`, { emailVerified: true })).statusCode,
      impersonate: async headers =>
        (await call(headers, 'POST', `/admin/users/${holder.id}/impersonate`)).statusCode,
      import: importLine,
      factors: async headers =>
        (await call(headers, 'DELETE', `/admin/users/${holder.id}/factors`)).statusCode,
    }
    for (const missing of SCOPES) {
      const { headers } = await createKey(
        app,
        SCOPES.filter(scope => scope !== missing),
      )
      for (const [name, attempt] of Object.entries(attempts))
        t.equal(await attempt(headers), 403, `${name} without ${missing}`)
    }
    const limited = await createKey(app, ['users:identity', 'users:write'])
    t.equal(
      (await call(limited.headers, 'PUT', `/admin/users/${other}`, { email: freshEmail() })).statusCode,
      200,
    )
    t.equal(
      (await call(limited.headers, 'PUT', `/admin/users/${holder.id}`, { roles: [ROLE, 'x'] })).statusCode,
      200,
    )
    const all = await createKey(app, SCOPES)
    for (const [name, attempt] of Object.entries(attempts)) t.ok((await attempt(all.headers)) < 300, name)
  })

  t.test('what an administrator may do equals a key with the same scopes, by URL and form', async t => {
    const person = await administrator(app)
    const { id } = await signUp(app)
    const clients = [
      await openConsole(app, person.token),
      await signedInTo(app, (await createKey(app, SCOPES)).text),
    ]
    const cookies = clients.map((client, index) =>
      [
        `gatehouse-console=${client.cookie('gatehouse-console')}`,
        ...(index === 0 ? [`ACCESS_TOKEN=${person.token}`] : []),
      ].join('; '),
    )
    const urls = app.routeTable.filter(
      ({ url }) => url.startsWith('/console') && !/sign-in|sign-out|live/.test(url),
    )
    t.ok(urls.length > 40)
    for (const { url: template, methods } of urls)
      for (const method of methods.filter(each => each === 'GET' || each === 'POST')) {
        const url = template.replace(':rowId', randomUUID()).replace(/:\w+/, id)
        const responses = await Promise.all(
          cookies.map(cookie =>
            app.inject({
              method: method as 'GET' | 'POST',
              url,
              headers: {
                cookie,
                ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
              },
              ...(method === 'POST' && { payload: 'unknown=1' }),
            }),
          ),
        )
        t.equal(responses[0]?.statusCode, responses[1]?.statusCode, `${method} ${url}`)
      }
  })
})

t.test('CONSOLE_ROLE and CONSOLE_SCOPES are checked at the start', async t => {
  const start = (env: Record<string, string>) => build(t, { env: { CONSOLE: 'on', ...env } })
  await t.rejects(start({ CONSOLE_ROLE: ROLE }), /CONSOLE_ROLE and CONSOLE_SCOPES are needed together/)
  await t.rejects(start({ CONSOLE_SCOPES: 'users:read' }), /are needed together/)
  await t.rejects(
    start({ CONSOLE_ROLE: 'No Role', CONSOLE_SCOPES: 'users:read' }),
    /CONSOLE_ROLE must be a role/,
  )
  await t.rejects(
    start({ CONSOLE_ROLE: ROLE, CONSOLE_SCOPES: 'users:fly' }),
    /CONSOLE_SCOPES names "users:fly"/,
  )
})
