/**
 * Generated from the live route table, so that a new route is covered at once. No engine has a part in it: who a token or key belongs to is
 * tested on both in `test/auth/`, `test/api-keys/` and `test/admin-keys/`.
 */
import type { InjectOptions } from 'fastify'
import t from 'tap'
import { createKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, accountStatus, bearer, build, cookie, signUp, updateUser } from '../support/build.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'
import { type LiveRoute, liveRoutes } from '../support/routes.ts'
import { inShortRun } from '../support/run.ts'

t.test('every route', async t => {
  const app = await build(t, { env: MAILED_SIGN_INS })
  const routes = liveRoutes(app)
  let good = await signUp(app)
  const disabled = await signUp(app)
  await updateUser(app, disabled.id, { disabled: true })

  /** Some routes end the session that they are called with: the next call gets another one. */
  const renew = async () => {
    if ((await accountStatus(app, good.token)) !== 200) good = await signUp(app)
  }

  const CALLERS = [
    { token: 'none', identified: false, headers: () => ({}) },
    { token: 'bad', identified: false, headers: () => bearer('not.a.token') },
    { token: 'bad, of another spelling', identified: false, headers: () => bearer(`${good.token}=`) },
    { token: "a disabled user's", identified: false, headers: () => bearer(disabled.token) },
    { token: "a disabled user's, cookie", identified: false, headers: () => cookie(disabled.token) },
    { token: 'good', identified: true, headers: () => bearer(good.token) },
    { token: 'good, cookie', identified: true, headers: () => cookie(good.token) },
  ]

  const KEYS = [
    { key: 'none', accepted: false, headers: {} },
    { key: 'bad', accepted: false, headers: { 'x-admin-key': `${ADMIN_KEY}x` } },
    { key: 'good', accepted: true, headers: { 'x-admin-key': ADMIN_KEY } },
  ]

  /** `npm test` combines bad tokens with bad keys only once. */
  const keysBeside = ({ token }: { readonly token: string }) =>
    ['none', 'bad', 'good'].includes(token)
      ? KEYS
      : inShortRun(
          KEYS.filter(({ accepted }) => accepted),
          KEYS,
        )

  /** The callers have no roles: on a route that requires one, the role gate rejects them after the user gate. */
  const lacksRole = ({ roles }: LiveRoute): boolean => roles !== undefined

  const mayPass = ({ gate }: LiveRoute, identified: boolean, accepted: boolean): boolean =>
    gate === undefined || (gate === 'user' ? identified : accepted)

  /** With parameters that fit no schema. */
  const urlOf = ({ url }: LiveRoute): string => url.replace(/:\w+|\*/g, 'x')

  for (const route of routes) {
    t.test(
      `${route.method} ${route.url}: 401 exactly for clients that the gate rejects (§5.1.4, §5.2.3)`,
      async t => {
        for (const caller of CALLERS) {
          for (const key of keysBeside(caller)) {
            await renew()
            // No body, and a parameter that fits no schema: an authenticated request changes nothing.
            const response = await app.inject({
              method: route.method as InjectOptions['method'] & string,
              url: urlOf(route),
              headers: { ...caller.headers(), ...key.headers },
            })
            const passes = mayPass(route, caller.identified, key.accepted)
            const title = `token: ${caller.token}, key: ${key.key}`
            if (passes && lacksRole(route)) t.equal(response.statusCode, 403, title)
            else if (passes) t.not(response.statusCode, 401, title)
            else t.equal(response.statusCode, 401, title)
            t.ok(response.statusCode < 500, `${title}: no failure of the service`)
            if (!passes)
              t.ok(response.headers['www-authenticate'], 'a 401 carries a challenge (RFC 9110 §15.5.2)')
          }
        }
      },
    )
  }

  /** No body, and a parameter that fits no schema, as above. */
  const statusOf = async (route: LiveRoute, headers: Record<string, string>): Promise<number> =>
    (await app.inject({ method: route.method as 'GET', url: urlOf(route), headers })).statusCode

  const { userScopes, adminScopes } = app.services
  const keysOf = async (declared: object, create: (scopes: string[]) => Promise<Record<string, string>>) => {
    const names = Object.keys(declared)
    const keys = new Map<string, { only: Record<string, string>; others: Record<string, string> }>()
    for (const name of names)
      keys.set(name, {
        only: await create([name]),
        others: await create(names.filter(each => each !== name)),
      })
    return { keys, all: await create(names) }
  }

  t.test('every admin route needs its scope: 403 for keys with all others', async t => {
    const { keys, all } = await keysOf(adminScopes, async scopes => (await createKey(app, scopes)).headers)
    for (const route of routes.filter(({ gate }) => gate === 'adminKey')) {
      const title = `${route.method} ${route.url}`
      const key = keys.get(route.scope ?? '')
      if (key === undefined) t.fail(`${title}: no scope`)
      else {
        for (const headers of [key.only, all])
          t.notOk([401, 403].includes(await statusOf(route, headers)), `${title}: with the scope`)
        const { fieldScopes } = route
        const left = Object.keys(adminScopes).filter(
          name => name !== route.scope && !fieldScopes.includes(name),
        )
        const others = fieldScopes.length === 0 ? key.others : { ...(await createKey(app, left)).headers }
        t.equal(await statusOf(route, others), 403, `${title}: without the scope`)
        t.equal(await statusOf(route, { ...others, ...bearer(good.token) }), 403, `${title}: and a token`)
      }
    }
  })

  t.test('private routes accept API keys with their scope, and only sessions without one', async t => {
    const { token } = await signUp(app)
    const { keys, all } = await keysOf(userScopes, async scopes => {
      const request = { method: 'POST', url: '/account/api-keys', headers: bearer(token) } as const
      const response = await app.inject({ ...request, payload: { name: 'a key', scopes } })
      t.equal(response.statusCode, 201, response.body)
      return bearer(response.json().token)
    })
    for (const route of routes.filter(({ gate }) => gate === 'user')) {
      const title = `${route.method} ${route.url}`
      const key = keys.get(route.scope ?? '')
      if (key === undefined) t.equal(await statusOf(route, all), 403, `${title}: sessions only`)
      else {
        for (const headers of [key.only, all]) {
          const status = await statusOf(route, headers)
          if (lacksRole(route)) t.equal(status, 403, `${title}: without the role`)
          else t.notOk([401, 403].includes(status), `${title}: with the scope`)
        }
        t.equal(await statusOf(route, key.others), 403, `${title}: without the scope`)
      }
    }
  })
})
