/** The verifier beside a real service: identities, what is kept, and what ends (docs/verifying.md). */
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createVerifier } from '../../verifier/exports.ts'
import { call } from '../support/account-routes.ts'
import { createKey } from '../support/api-keys.ts'
import { ADMIN_KEY, asAdmin, bearer, type Context, signUp, updateUser } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { buildOAuth, registerClient } from '../support/oauth.ts'
import { CALLBACK, newTokens } from '../support/oauth-flow.ts'

const listen = async (app: FastifyInstance): Promise<string> => {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
}

const verifierOf = (t: Context, baseUrl: string, options = {}) => {
  const verifier = createVerifier({ baseUrl, adminKey: ADMIN_KEY, ...options })
  t.teardown(() => verifier.close())
  return verifier
}

/** Milliseconds: twice what the rule for users who were named lately needs. */
const KEPT = 4_000

await onEveryEngine(t, async (t, engine) => {
  const app = await buildOAuth(engine, t)
  const url = await listen(app)
  const verifier = verifierOf(t, url)

  /** Waits until the token is kept. */
  const warm = async (token: string): Promise<void> => {
    for (const end = Date.now() + 30_000; Date.now() < end; await sleep(50)) {
      const { hits } = verifier.statistics
      await verifier.verify(token)
      if (verifier.statistics.hits > hits) return
    }
    throw new Error('the token is not kept')
  }

  t.test('every kind of token has its identity, and then costs no request', async t => {
    const user = await signUp(app)
    await updateUser(app, user.id, { roles: ['editor'] })
    const key = await createKey(app, user.token, { scopes: ['account:read'] })
    const client = await registerClient(app, { redirectUris: [CALLBACK], scopes: ['account:read'] })
    const { accessToken } = await newTokens(app, client, user.token)
    await sleep(2_500)
    for (const token of [user.token, key.token, accessToken]) await warm(token)
    const { requests } = verifier.statistics
    t.match(await verifier.verify(user.token), { sub: user.id, roles: ['editor'], sid: /^[0-9a-f-]{36}$/ })
    t.match(await verifier.verify(key.token), { sub: user.id, scope: 'account:read', jti: key.apiKey.id })
    t.match(await verifier.verify(accessToken), { sub: user.id, client_id: client.id })
    t.equal(verifier.statistics.requests, requests)

    const url = `/admin/clients/${client.id}`
    t.equal((await app.inject({ method: 'DELETE', url, headers: asAdmin })).statusCode, 204)
    await sleep(1_000)
    t.equal(await verifier.verify(accessToken), null, 'its client was deleted')
    t.match(await verifier.verify(user.token), { sub: user.id })
  })

  t.test('what ends access ends it here within a second', async t => {
    const ends: Record<string, (user: { id: string; token: string }) => Promise<unknown>> = {
      'signed out': ({ token }) => call(app, 'POST', '/account/sign-out', undefined, bearer(token)),
      disabled: ({ id }) => updateUser(app, id, { disabled: true }),
      deleted: ({ id }) => app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin }),
    }
    for (const [title, end] of Object.entries(ends)) {
      const user = await signUp(app)
      await warm(user.token)
      await end(user)
      await sleep(1_000)
      t.equal(await verifier.verify(user.token), null, title)
    }
  })

  t.test('new roles are seen within a second', async t => {
    const user = await signUp(app)
    await warm(user.token)
    await updateUser(app, user.id, { roles: ['auditor'] })
    await sleep(1_000)
    t.match(await verifier.verify(user.token), { roles: ['auditor'] })
  })

  t.test('many tokens at once are few requests, and memory is bounded', async t => {
    const users = await Promise.all(Array.from({ length: 5 }, () => signUp(app)))
    const small = verifierOf(t, url, { maxTokens: 3 })
    await sleep(KEPT)
    const { requests } = small.statistics
    const tokens = [...users, ...users].map(({ token }) => token)
    const unknown = Array.from({ length: 250 }, (_, index) => `unknown-${index}`)
    const found = await Promise.all([...tokens, ...unknown].map(token => small.verify(token)))
    t.same(
      found.slice(0, 10).map(identity => identity?.sub),
      [...users, ...users].map(({ id }) => id),
    )
    t.ok(found.slice(10).every(identity => identity === null))
    t.equal(small.statistics.requests - requests, 3, '255 tokens in batches of 100')
    t.equal(small.statistics.kept, 3)
  })

  t.test('what is no token is refused without a request', async t => {
    const { requests } = verifier.statistics
    for (const token of ['', ' ', '"'.repeat(100), 'é', 'x'.repeat(8_193), '\u0000'])
      t.equal(await verifier.verify(token), null)
    for (const token of [undefined, null, 7]) t.equal(await verifier.verify(token as never), null)
    t.equal(verifier.statistics.requests, requests)
  })
})
