import { API_KEY_PREFIX, KEY_LENGTH } from '#core/auth/opaque-key'
import { versus } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import type { Scenario } from '../scenario.ts'

const USERS = 10_000

/** Texts with the prefix and length of an API key, and a wrong checksum. */
const invented = (token: string): string =>
  API_KEY_PREFIX + token.replaceAll(/[^A-Za-z0-9]/g, '').slice(-(KEY_LENGTH - API_KEY_PREFIX.length))

/** Changes the first character of the signature. */
const forge = (token: string): string => {
  const at = token.lastIndexOf('.') + 1
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
}

const scenario = (
  name: string,
  title: string,
  challenge: string,
  headers: (tokens: readonly string[]) => readonly Readonly<Record<string, string>>[],
  atLeast: number,
): Scenario => ({
  name,
  title,
  run: async bench => {
    const store = await bench.store(USERS)
    const requests = get('/account', headers(await store.tokens(USERS)), 401)
    const baseline = () => startServer('bench/baselines/unauthorized.ts', { CHALLENGE: challenge })
    return withServers([() => startService(store), baseline], (service, baseline) =>
      versus(bench, { service, baseline, baselineName: 'bare Fastify', requests, atLeast }),
    )
  },
})

export const withoutToken = scenario('no-token', 'GET /account, no token: 401', 'Bearer', () => [{}], 0.9)

export const forgedToken = scenario(
  'forged-token',
  'GET /account, 10,000 forged tokens in rotation: 401',
  'Bearer error="invalid_token"',
  tokens => tokens.map(forge).map(bearer),
  0.6,
)

export const inventedApiKey = scenario(
  'invented-api-key',
  'GET /account, 10,000 invented API keys in rotation: 401',
  'Bearer error="invalid_token"',
  tokens => tokens.map(invented).map(bearer),
  0.6,
)
