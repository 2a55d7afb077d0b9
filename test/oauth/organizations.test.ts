/** Access through clients that is limited to one organization (docs/oauth.md, "Organizations"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { accountStatus, asAdmin, bearer, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { basic, buildOAuth, claimsOf, postForm, registerClient } from '../support/oauth.ts'
import {
  authorize,
  CALLBACK,
  challengeOf,
  newCode,
  newTokens,
  newVerifier,
  openConsent,
  redeem,
  refresh,
  requestIn,
  targetOf,
  tokensIn,
} from '../support/oauth-flow.ts'
import { addMember, adminCall, call, organizationOf } from '../support/organizations.ts'

const WEB = {
  redirectUris: [CALLBACK],
  scopes: ['account:read', 'organizations:read', 'organizations:write', 'offline_access'],
}

/** A user who owns one organization, and is a member of another. */
const withOrganizations = async (app: FastifyInstance) => {
  const [user, other] = [await signUp(app), await signUp(app)]
  const [own, foreign] = [await organizationOf(app, user), await organizationOf(app, other)]
  await addMember(app, foreign.id, user.id)
  return { user, own, joined: foreign, stranger: await organizationOf(app, other) }
}

await onEnginesOfRun(t, async (t, engine) => {
  t.test('a token with org opens the routes of this organization alone', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { user, own, joined } = await withOrganizations(app)
    const { accessToken, refreshToken } = await newTokens(app, client, user.token, { organization: own.id })
    t.equal(claimsOf(accessToken).org, own.id)
    const as = { token: accessToken }
    const status = async (method: 'GET' | 'POST', url: string, payload?: object) =>
      (await call(app, as, method, url, payload)).statusCode
    for (const _ of ['from the store', 'from memory']) {
      t.equal(await status('GET', `/organizations/${own.id}`), 200)
      t.equal(await status('GET', `/organizations/${own.id.toUpperCase()}`), 200)
      t.equal(await status('GET', `/organizations/${joined.id}`), 404)
    }
    t.equal(await status('GET', '/organizations'), 403, 'the list of all')
    t.equal(await status('POST', '/organizations', { name: 'Another' }), 403)
    t.equal(await status('GET', '/account/invitations'), 403)
    t.equal(await accountStatus(app, accessToken), 200, 'other routes are opened by scopes')
    const next = tokensIn(await refresh(app, client, refreshToken))
    t.equal(claimsOf(next.accessToken).org, own.id)
    const [grant] = (await app.inject({ url: '/account/grants', headers: bearer(user.token) })).json().results
    t.equal(grant.organization, own.id)
    const introspected = await app.inject({
      ...{ method: 'POST', url: '/admin/introspect', headers: asAdmin, payload: { token: accessToken } },
    })
    t.match(introspected.json(), { active: true, org: own.id })

    const without = await newTokens(app, client, user.token, { prompt: 'consent' })
    t.notOk('org' in claimsOf(without.accessToken))
    for (const { id } of [own, joined])
      t.equal(
        (await call(app, { token: without.accessToken }, 'GET', `/organizations/${id}`)).statusCode,
        200,
      )
    t.equal((await call(app, { token: without.accessToken }, 'GET', '/organizations')).statusCode, 200)
  })

  t.test('a removal holds at the next request', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { user, joined } = await withOrganizations(app)
    const organization = joined.id
    const { accessToken, refreshToken } = await newTokens(app, client, user.token, { organization })
    const code = await newCode(app, client, user.token, { organization })
    const status = async () =>
      (await call(app, { token: accessToken }, 'GET', `/organizations/${organization}`)).statusCode
    const active = async (token: string) =>
      (await postForm(app, 'introspect', { token }, basic(client))).json()
    t.equal(await status(), 200)
    t.match(await active(accessToken), { active: true, org: organization })
    t.match(await active(refreshToken), { active: true, org: organization })
    await adminCall(app, 'DELETE', `/admin/organizations/${organization}/members/${user.id}`)
    t.equal(await status(), 404)
    for (const token of [accessToken, refreshToken]) t.strictSame(await active(token), { active: false })
    t.match((await refresh(app, client, refreshToken)).json(), { error: 'invalid_grant' })
    t.match((await redeem(app, client, code)).json(), { error: 'invalid_grant' })
    await addMember(app, organization, user.id)
    t.equal(await status(), 200, 'a member again')
    t.equal((await refresh(app, client, refreshToken)).statusCode, 200, 'nothing was used up')
    t.equal((await redeem(app, client, code)).statusCode, 200)
  })

  t.test('the token endpoint narrows, and never widens', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { user, own, joined, stranger } = await withOrganizations(app)
    const code = await newCode(app, client, user.token)
    const foreign = await redeem(app, client, code, { organization: stranger.id })
    t.match(foreign.json(), { error: 'invalid_request', errors: { organization: Array } })
    const first = tokensIn(await redeem(app, client, code, { organization: own.id }))
    t.equal(claimsOf(first.accessToken).org, own.id, 'the code was not used up')
    const { refreshToken } = first
    const narrowed = tokensIn(await refresh(app, client, refreshToken, { organization: joined.id }))
    t.equal(claimsOf(narrowed.accessToken).org, joined.id)
    t.notOk('org' in claimsOf(tokensIn(await refresh(app, client, refreshToken)).accessToken))
    for (const organization of [stranger.id, 'x', ''])
      t.equal((await refresh(app, client, refreshToken, { organization })).statusCode, 400)
    const limited = await newTokens(app, client, user.token, { organization: own.id, prompt: 'consent' })
    const wider = await refresh(app, client, limited.refreshToken, { organization: joined.id })
    t.match(wider.json(), { error: 'invalid_request' })
    const same = await refresh(app, client, limited.refreshToken, { organization: own.id })
    t.equal(claimsOf(tokensIn(same).accessToken).org, own.id)
  })

  t.test('the user chooses, and nothing is preselected', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { user, own, joined, stranger } = await withOrganizations(app)
    const begin = async (more: Readonly<Record<string, string>> = {}) => {
      const query = {
        ...{ client_id: client.id, response_type: 'code', code_challenge: challengeOf(newVerifier()) },
        ...{ code_challenge_method: 'S256', ...more },
      }
      return requestIn(await authorize(app, query, user.token))
    }
    const page = async (request: string) => (await openConsent(app, request, user.token)).body
    const choice = await page(await begin())
    t.match(choice, /<option value="" selected>/)
    t.match(choice, `<option value="${own.id}">${own.name}`)
    t.match(choice, `<option value="${joined.id}">${joined.name}`)
    t.notMatch(choice, stranger.id)
    t.notMatch(await page(await begin({ scope: 'account:read' })), '<option', 'nothing of organizations')
    const named = await page(await begin({ organization: joined.id }))
    t.match(named, joined.name)
    t.notMatch(named, '<option')
    const foreign = targetOf(
      await openConsent(app, await begin({ organization: stranger.id, state: 's' }), user.token),
    )
    t.strictSame(
      [foreign.searchParams.get('error'), foreign.searchParams.get('state')],
      ['access_denied', 's'],
    )

    const decideFor = async (organization: string) =>
      app.inject({
        method: 'POST',
        url: '/oauth/consent',
        headers: {
          ...{ accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' },
          cookie: `ACCESS_TOKEN=${user.token}`,
        },
        payload: new URLSearchParams({ request: await begin(), decision: 'allow', organization }).toString(),
      })
    t.equal((await decideFor(stranger.id)).statusCode, 400)
    t.ok(targetOf(await decideFor(own.id)).searchParams.has('code'))
  })

  t.test('a consent for one organization is remembered for it, and never wider', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { user, own, joined } = await withOrganizations(app)
    const status = async (more: Readonly<Record<string, string>>) => {
      const query = {
        ...{ client_id: client.id, response_type: 'code', code_challenge: challengeOf(newVerifier()) },
        ...{ code_challenge_method: 'S256', ...more },
      }
      const request = requestIn(await authorize(app, query, user.token))
      return (await openConsent(app, request, user.token)).statusCode
    }
    await newTokens(app, client, user.token, { organization: joined.id })
    t.equal(await status({ organization: own.id }), 200)
    t.equal(await status({ organization: joined.id }), 303)
    const { accessToken } = await newTokens(app, client, user.token)
    t.equal(claimsOf(accessToken).org, joined.id, 'not wider than what the user has agreed to')
    await adminCall(app, 'DELETE', `/admin/organizations/${joined.id}/members/${user.id}`)
    t.equal(await status({}), 200, 'of no organization of the user')
  })
})
