/**
 * Random histories of refresh tokens against the real operations; on PostgreSQL of two instances. `REFRESH_HISTORIES=10000 REFRESH_SEED=1`
 * runs more, or the same again: `REFRESH_HISTORIES=10000 npm run test:run -- test/oauth/refresh-histories.test.ts --disable-coverage`
 */
import { randomInt } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { ServiceError } from '#base/errors'
import type { StoredClient } from '#features/oauth/client'
import { ERRORS } from '#features/oauth/definitions'
import type { OAuthServer } from '#features/oauth/oauth-server'
import { allEvents } from '../support/admin-routes.ts'
import { manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { buildOAuth, registerClient } from '../support/oauth.ts'
import { CALLBACK, challengeOf, newVerifier, PUBLIC } from '../support/oauth-flow.ts'
import { createRandom } from '../support/random.ts'
import { type RefreshService, runHistory, runTheft } from '../support/refresh-histories.ts'

const WINDOW = 60_000
const HISTORIES = Number(process.env.REFRESH_HISTORIES ?? 200)
const SEED = Number(process.env.REFRESH_SEED ?? randomInt(2 ** 31))

const serverOf = ({ services }: FastifyInstance): OAuthServer => {
  if (services.oauth === null) throw new Error('OAUTH is off')
  return services.oauth
}

/** The first refresh token of a grant, by the operations behind the pages. */
const newRefreshToken = async (
  app: FastifyInstance,
  client: StoredClient,
  token: string,
): Promise<string> => {
  const { authorizations } = serverOf(app)
  const verifier = newVerifier()
  const step = await authorizations.begin({
    ...{ client_id: client.id, response_type: 'code', redirect_uri: CALLBACK },
    ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256' },
  })
  if (step.kind !== 'page') throw new Error(step.url)
  const principal = await app.services.authenticator.authenticate(token)
  const code = new URL(await authorizations.allow(step.request, principal)).searchParams.get('code') ?? ''
  const given = { redirectUri: CALLBACK, verifier, organization: undefined, jkt: null }
  const { refreshToken } = await authorizations.redeem(code, given, client)
  return refreshToken ?? ''
}

await onEnginesOfRun(t, async (t, engine) => {
  const open = async (t: Parameters<typeof buildOAuth>[1]) => {
    const clock = manualClock()
    const env = { DATABASE_URL: await engine.newDatabase(t), OAUTH_GRANT: '3650d' }
    const lasting = { ...env, SESSION_LIFETIME: '3650d', SESSION_IDLE: '3650d', OAUTH_GRANT_IDLE: '3650d' }
    const app = await buildOAuth(engine, t, { env: lasting, clock: clock.now })
    const others =
      engine.name === 'postgres' ? [await buildOAuth(engine, t, { env: lasting, clock: clock.now })] : []
    const { id } = await registerClient(app, PUBLIC)
    const client = await app.services.clients.get(id)
    const user = await signUp(app)
    const servers = [app, ...others].map(serverOf)
    const service: RefreshService = {
      instances: servers.length,
      async refresh(instance, token) {
        try {
          return (await servers[instance]?.grants.refresh(token, client, null, undefined))?.refreshToken
        } catch (error) {
          if (error instanceof ServiceError && error.code === ERRORS.invalidGrant.code) return null
          throw error
        }
      },
      window: WINDOW,
      passWindow: () => clock.advance(WINDOW),
      clock: clock.now,
    }
    return { app, user, service, newToken: () => newRefreshToken(app, client, user.token) }
  }

  t.test(`histories of four processes sign nobody out (REFRESH_SEED=${SEED})`, async t => {
    const { service, newToken } = await open(t)
    const random = createRandom(SEED)
    for (let run = 0; run < HISTORIES; run += 1) {
      const ending = await runHistory(service, random, await newToken())
      if (ending !== 'passed') {
        t.fail(`history ${run}: ${JSON.stringify(ending)}`)
        return
      }
    }
    t.pass(`${HISTORIES} histories`)
  })

  t.test(`a thief who goes on beside the client is found (REFRESH_SEED=${SEED})`, async t => {
    const { app, user, service, newToken } = await open(t)
    const random = createRandom(SEED)
    const thefts = Math.ceil(HISTORIES / 10)
    for (let run = 0; run < thefts; run += 1) {
      const found = await runTheft(service, random, await newToken())
      if (found === null) {
        t.fail(`theft ${run} is not found`)
        return
      }
    }
    const events = await allEvents(app, { userId: user.id })
    t.equal(events.filter(({ type }) => type === 'grant.reused').length, thefts)
  })
})
