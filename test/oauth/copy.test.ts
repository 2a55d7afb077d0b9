/** `copy`: clients, resources and grants keep their ids and secrets, so what was issued before stays valid (docs/operations.md). */
import t from 'tap'
import { accountStatus, asAdmin, bearer, newFile, signUp } from '../support/build.ts'
import { copyStore } from '../support/copies.ts'
import { onEveryEngine } from '../support/engines.ts'
import {
  adminStatus,
  basic,
  buildOAuth,
  ownToken,
  postForm,
  registerClient,
  registerMachine,
} from '../support/oauth.ts'
import { CALLBACK, newCode, newTokens, PUBLIC, redeem, refresh, tokensIn } from '../support/oauth-flow.ts'
import { newDatabase } from '../support/postgres.ts'

await onEveryEngine(t, async (t, engine) => {
  t.test('tokens, codes and secrets stay valid after a copy to the other engine', async t => {
    const from = await engine.newDatabase(t)
    const to = await (engine.name === 'sqlite' ? newDatabase(t) : newFile(t))
    const source = await buildOAuth(engine, t, { env: { DATABASE_URL: from } })
    const headers = asAdmin
    const payload = {
      identifier: 'https://reports.example.test',
      name: 'Reports',
      scopes: { 'reports:read': 'Read' },
    }
    await source.inject({ method: 'POST', url: '/admin/resources', headers, payload })
    const web = await registerClient(source, {
      redirectUris: [CALLBACK],
      scopes: ['account:read', 'offline_access'],
    })
    const native = await registerClient(source, PUBLIC)
    const machine = await registerMachine(source)
    const user = await signUp(source)
    const [ofWeb, ofNative] = [
      await newTokens(source, web, user.token),
      await newTokens(source, native, user.token),
    ]
    const own = await ownToken(source, machine)
    const code = await newCode(source, web, user.token)
    const { accessToken: revoked } = await newTokens(source, web, user.token)
    await postForm(source, 'revoke', { token: revoked }, basic(web))
    const list = async (app: typeof source, url: string, as: Record<string, string>) =>
      (await app.inject({ url, headers: as })).json().results
    const before = {
      clients: await list(source, '/admin/clients', asAdmin),
      resources: await list(source, '/admin/resources', asAdmin),
      grants: await list(source, '/account/grants', bearer(user.token)),
    }
    await source.close()

    await copyStore(from, to)
    const app = await buildOAuth(engine, t, { env: { DATABASE_URL: to } })
    t.strictSame(await list(app, '/admin/clients', asAdmin), before.clients)
    t.strictSame(await list(app, '/admin/resources', asAdmin), before.resources)
    t.strictSame(await list(app, '/account/grants', bearer(user.token)), before.grants)
    t.equal(before.grants.length, 3)
    t.equal(await adminStatus(app, own), 200)
    t.equal(await adminStatus(app, await ownToken(app, machine)), 200, 'by the secret')
    for (const [client, { accessToken, refreshToken }] of [
      [web, ofWeb],
      [native, ofNative],
    ] as const) {
      t.equal(await accountStatus(app, accessToken), 200)
      const next = tokensIn(await refresh(app, client, refreshToken))
      t.equal(await accountStatus(app, next.accessToken), 200)
    }
    t.equal((await redeem(app, web, code)).statusCode, 200)
    t.equal(await accountStatus(app, revoked), 401)
  })
})
