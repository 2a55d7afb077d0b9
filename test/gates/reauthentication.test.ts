/** Routes that declare `config.reauthenticate`, and `POST /account/reauthenticate` (RFC 9470; docs/design.md, "Proof of identity"). */
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { call } from '../support/account-routes.ts'
import { type AuditLine, getEvents, impersonate } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import { asAdmin, bearer, manualClock, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { HeldHashing, quickHashing } from '../support/fake-hashing.ts'
import { perAddress } from '../support/limits.ts'
import { routesTree } from '../support/project-copy.ts'

const TEN_MINUTES = 600_000
const REFUSED =
  'This needs a sign-in within the last ten minutes: send your password or a code too, or use POST /account/reauthenticate first'
const CHALLENGE = 'Bearer error="insufficient_user_authentication", max_age=600'

const route = (
  config: string,
  body = 'Type.Object({ name: Type.String() }, { additionalProperties: false })',
): string => `
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'

const vault: FastifyPluginAsyncTypebox = async app => {
  const config = ${config} as const
  app.post('', { config, schema: { body: ${body} } }, async request => ({ seen: request.validatedData.body, raw: request.body }))
  app.delete('', { config }, async request => ({ seen: request.validatedData.body }))
}

export default vault
`

const inPrivate = (text: string) => ({ 'routes/private/vault/routes.ts': text })

const tree = routesTree(t, inPrivate(route('{ reauthenticate: true }')))

const post = (app: FastifyInstance, token: string, payload: Record<string, unknown> = {}) =>
  call(app, 'POST', '/vault', { name: 'a', ...payload }, bearer(token))

const remove = (app: FastifyInstance, token: string, payload?: Record<string, unknown>) =>
  call(app, 'DELETE', '/vault', payload, bearer(token))

const renew = (
  app: FastifyInstance,
  token: string,
  payload: Record<string, unknown> = { password: PASSWORD },
) => call(app, 'POST', '/account/reauthenticate', payload, bearer(token))

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const options = { clock: clock.now, env: { DATABASE_URL }, hasher: quickHashing }
  const app = await tree.build(t, options)

  t.test(
    'a recent sign-in suffices; later the body needs the password, which the handler does not see',
    async t => {
      const { token } = await signUp(app)
      t.same((await post(app, token)).json(), { seen: { name: 'a' }, raw: { name: 'a' } })
      t.equal((await remove(app, token)).statusCode, 200)
      clock.advance(TEN_MINUTES + 1)
      for (const response of [
        await post(app, token),
        await remove(app, token),
        await remove(app, token, {}),
      ]) {
        t.equal(globalErrorOf(t, response, 403), REFUSED)
        t.equal(response.headers['www-authenticate'], CHALLENGE)
      }
      errorsAt(t, await post(app, token, { password: 'not the pass phrase' }), 400, ['password'])
      t.same((await post(app, token, { password: PASSWORD })).json(), {
        seen: { name: 'a' },
        raw: { name: 'a' },
      })
      t.same((await remove(app, token, { password: PASSWORD })).json(), { seen: {} })
      t.equal((await post(app, token)).statusCode, 403, 'a password confirms one request')
    },
  )

  t.test('the rest of the body is validated as declared', async t => {
    const { token } = await signUp(app)
    errorsAt(t, await post(app, token, { other: 1 }), 400, ['other'])
    errorsAt(t, await post(app, token, { password: 1 }), 400, ['password'])
    errorsAt(t, await post(app, token, { name: 1, password: PASSWORD }), 400, ['name'])
    errorsAt(t, await remove(app, token, { name: 'a' }), 400, ['name'])
    t.equal((await app.inject({ method: 'DELETE', url: '/vault' })).statusCode, 401)
  })

  t.test('re-authentication counts for ten minutes, in its session alone, on every instance', async t => {
    const { id, email, token } = await signUp(app)
    const other: string = (await signIn(app, email)).json().accessToken
    clock.advance(TEN_MINUTES + 1)
    errorsAt(t, await renew(app, token, { password: 'not the pass phrase' }), 400, ['password'])
    errorsAt(t, await renew(app, token, {}), 400, ['password'])
    t.equal((await post(app, token)).statusCode, 403)
    const renewed = await renew(app, token)
    t.equal(renewed.statusCode, 204)
    t.equal(renewed.body, '')
    t.equal((await post(app, token)).statusCode, 200)
    const elsewhere = await tree.build(t, options)
    t.equal((await post(elsewhere, token)).statusCode, 200, 'on another instance')
    t.equal((await post(app, other)).statusCode, 403, 'in another session')
    clock.advance(TEN_MINUTES)
    t.equal((await post(app, token)).statusCode, 200)
    clock.advance(1)
    for (const instance of [app, elsewhere]) t.equal((await post(instance, token)).statusCode, 403)
    const events: AuditLine[] = (await getEvents(app, { userId: id })).json().results
    const { results } = (await call(app, 'GET', '/account/sessions', undefined, bearer(token))).json()
    const { id: session } = results.find(({ current }: { current: boolean }) => current)
    t.match(
      events.filter(({ type }) => type === 'session.reauthenticated'),
      [{ actor: { type: 'user', id }, details: { session } }],
    )
  })

  t.test('introspection has the time; iat stays that of the sign-in (RFC 9470 §6.2)', async t => {
    const { token } = await signUp(app)
    const inspect = async () => (await call(app, 'POST', '/admin/introspect', { token }, asAdmin)).json()
    const before = await inspect()
    t.equal(before.auth_time, before.iat)
    clock.advance(90_000)
    t.equal((await renew(app, token)).statusCode, 204)
    t.match(await inspect(), { iat: before.iat, auth_time: before.iat + 90 })
  })

  t.test('impersonated sessions and API keys prove nothing', async t => {
    const { id, token } = await signUp(app)
    const acting: string = (await impersonate(app, id)).json().accessToken
    for (const response of [
      await post(app, acting, { password: PASSWORD }),
      await post(app, acting),
      await renew(app, acting),
    ])
      t.equal(globalErrorOf(t, response, 403), 'An impersonated session cannot do this')
    const { token: key } = await createKey(app, token)
    for (const response of [await post(app, key, { password: PASSWORD }), await renew(app, key)])
      t.match(globalErrorOf(t, response, 403), /^This needs a session/)
  })

  t.test('a session that ends meanwhile is not renewed', async t => {
    const { token } = await signUp(app)
    const ended = await Promise.all([
      renew(app, token),
      call(app, 'POST', '/account/sign-out', undefined, bearer(token)),
    ])
    t.ok([204, 401].includes(ended[0].statusCode), `${ended[0].statusCode}`)
    t.equal((await renew(app, token)).statusCode, 401)
    t.equal((await post(app, token)).statusCode, 401)
  })

  t.test('both have the limits of routes that compare passwords', async t => {
    const limited = await tree.build(t, {
      ...options,
      env: { DATABASE_URL: await newDatabase(t), RATE_LIMIT: 'on' },
      rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ password: 4 }) },
    })
    const { token } = await signUp(limited)
    const responses = [await post(limited, token), await renew(limited, token), await remove(limited, token)]
    responses.push(await renew(limited, token), await post(limited, token), await renew(limited, token))
    t.same(
      responses.map(({ statusCode }) => statusCode),
      [200, 204, 200, 204, 429, 429],
    )
  })
})

t.test('a user who changes while the password is compared is refused', async t => {
  const hasher = new HeldHashing()
  const app = await routesTree(t, inPrivate(route("{ reauthenticate: true, roles: ['editor'] }"))).build(t, {
    hasher,
  })
  const meanwhile = async (change: (id: string, token: string) => Promise<{ statusCode: number }>) => {
    hasher.release()
    const { id, token } = await signUp(app)
    await updateUser(app, id, { roles: ['editor'] })
    hasher.hold()
    const hashes = hasher.begun.length
    const response = post(app, token, { password: PASSWORD })
    while (hasher.begun.length === hashes) await setImmediate()
    t.ok([200, 204].includes((await change(id, token)).statusCode))
    hasher.release()
    return response
  }
  t.equal((await meanwhile(id => updateUser(app, id, { firstName: 'Eve' }))).statusCode, 200)
  t.equal((await meanwhile(id => updateUser(app, id, { roles: [] }))).statusCode, 403)
  t.equal((await meanwhile(id => updateUser(app, id, { disabled: true }))).statusCode, 401)
  const signOut = (_id: string, token: string) =>
    call(app, 'POST', '/account/sign-out', undefined, bearer(token))
  t.equal((await meanwhile(signOut)).statusCode, 401)
})

t.test('a declaration that cannot be met stops the start', async t => {
  const cases = [
    [
      { 'routes/public/vault/routes.ts': route('{ reauthenticate: true }') },
      /only private routes know the session/,
    ],
    [
      inPrivate(route("{ reauthenticate: true, scope: 'account:write' }")),
      /API keys cannot prove who uses them/,
    ],
    [
      inPrivate(route('{ reauthenticate: true }', 'Type.Object({ password: Type.String() })')),
      /adds password and code to its body: rename its own/,
    ],
    ...[
      'Type.Union([Type.Object({ name: Type.String() }), Type.Null()])',
      'Type.Array(Type.String())',
      "{ content: { 'application/json': { schema: Type.Object({}) } } }",
    ].map(
      body =>
        [
          inPrivate(route('{ reauthenticate: true }', body)),
          /declare the body as one object with properties/,
        ] as const,
    ),
  ] as const
  for (const [files, message] of cases) await t.rejects(routesTree(t, files).build(t), { message })
})
