/**
 * Histories of refresh tokens on two instances that are killed: no process of a client is signed out, and a thief who goes on beside the
 * client is found (docs/oauth.md, "Refresh tokens").
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ADMIN_KEY } from '../../support/build.ts'
import { OAUTH_ENV } from '../../support/oauth.ts'
import { CALLBACK, challengeOf, newVerifier, PUBLIC } from '../../support/oauth-flow.ts'
import type { Random } from '../../support/random.ts'
import { createRandom } from '../../support/random.ts'
import { type RefreshService, runHistory, runTheft } from '../../support/refresh-histories.ts'
import { bearer, bodyOf, calls, send } from './http.ts'
import { type Instance, startPair } from './instance.ts'
import type { Part } from './part.ts'
import { Report } from './report.ts'
import { PASSWORD } from './revocation-users.ts'

/** Per round of the run: 10,000 for its 8. One of ten is one of a thief. */
const HISTORIES = 1_250

/** Histories at a time, each of a user with a few others. */
const LANES = 300
const USERS = 24

/** Milliseconds. Histories in which a request takes longer do not count. */
const WINDOW = 10_000
const MARGIN = 200

/** Milliseconds between two kills, and that an instance is away. */
const PEACE = { min: 4_000, max: 10_000 }
const AWAY = { min: 50, max: 1_500 }

const ENV = {
  ...OAUTH_ENV,
  ...{ OAUTH_REFRESH_WINDOW: `${WINDOW / 1_000}s`, RATE_LIMIT: 'off', MAIL_URL: 'off' },
}

type Form = Readonly<Record<string, string>>

const post = ({ url }: Instance, path: string, form: Form, headers: Form = {}): Promise<Response> =>
  fetch(url + path, { method: 'POST', redirect: 'manual', headers, body: new URLSearchParams(form) })

const register = async ({ url }: Instance): Promise<string> => {
  const body = { name: 'A client', ...PUBLIC }
  const call = {
    method: 'POST',
    path: '/admin/clients',
    headers: { 'x-admin-key': ADMIN_KEY },
    body,
  } as const
  return bodyOf(await send(url, call, false)).id as string
}

const signUp = async ({ url }: Instance, number: number): Promise<string> => {
  const response = await send(url, calls.signUp(`refresh-${number}@example.com`, PASSWORD), false)
  return bodyOf(response).accessToken as string
}

/** Goes through the pages as a browser does. @returns the first refresh token of a grant. @throws what a killed instance makes it throw. */
const newRefreshToken = async (instance: Instance, clientId: string, session: string): Promise<string> => {
  const verifier = newVerifier()
  const query = {
    ...{ client_id: clientId, response_type: 'code', redirect_uri: CALLBACK, prompt: 'consent' },
    ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256' },
  }
  const begun = await post(instance, '/oauth/authorize', query)
  const request = new URL(begun.headers.get('location') ?? '', `${instance.url}/oauth/`).searchParams.get(
    'request',
  )
  const decision = { request: request ?? '', decision: 'allow' }
  const page = await post(instance, '/oauth/consent', decision, {
    ...{ accept: 'text/html', cookie: `ACCESS_TOKEN=${session}` },
  })
  const code = /[?&;]code=([\w-]+)/.exec(await page.text())?.[1] ?? ''
  const redeemed = await post(instance, '/oauth/token', {
    ...{ grant_type: 'authorization_code', client_id: clientId, redirect_uri: CALLBACK },
    ...{ code, code_verifier: verifier },
  })
  const { refresh_token: token } = (await redeemed.json()) as { refresh_token?: string }
  if (token === undefined) throw new Error(`no token: ${redeemed.status}`)
  return token
}

const refreshAt = async (instance: Instance, clientId: string, token: string) => {
  const form = { grant_type: 'refresh_token', refresh_token: token, client_id: clientId }
  try {
    const response = await post(instance, '/oauth/token', form)
    const body = (await response.json()) as { refresh_token?: string; error?: string }
    return body.error === 'invalid_grant' ? null : body.refresh_token
  } catch {
    return undefined
  }
}

const kill = async (pair: readonly Instance[], random: Random, signal: AbortSignal): Promise<number> => {
  let kills = 0
  while (!signal.aborted) {
    await sleep(random.integer(PEACE.min, PEACE.max))
    const instance = random.pick(pair)
    await instance?.stop('SIGKILL')
    await sleep(random.integer(AWAY.min, AWAY.max))
    await instance?.start()
    kills += 1
  }
  return kills
}

export const runRefreshHistories = async ({ context, env, random, rounds }: Part): Promise<Report> => {
  const report = new Report('Refresh tokens on two instances that are killed')
  const pair = await startPair(context, { ...env, ...ENV })
  const clientId = await register(pair[0])
  const sessions: string[] = []
  for (let number = 0; number < USERS; number += 1) sessions.push(await signUp(pair[0], number))
  const service: RefreshService = {
    instances: pair.length,
    refresh: (instance, token) => refreshAt(pair[instance] ?? pair[0], clientId, token),
    window: WINDOW,
    passWindow: () => sleep(WINDOW + MARGIN),
    clock: () => performance.now(),
  }
  let late = 0
  const refused: string[] = []
  const unfound: string[] = []
  const presentations: number[] = []
  const total = HISTORIES * rounds
  const numbers = Array.from({ length: total }, (_, index) => index).values()
  const seed = random.integer(0, 2 ** 31)
  const lane = async (lane: number): Promise<void> => {
    const ofLane = createRandom(seed + lane)
    for (const number of numbers) {
      let first: string | null = null
      while (first === null)
        first = await newRefreshToken(
          ofLane.pick(pair) ?? pair[0],
          clientId,
          sessions[lane % USERS] ?? '',
        ).catch(() => sleep(MARGIN, null))
      if (number % 10 === 0) {
        const found = await runTheft(service, ofLane, first)
        if (found === null) unfound.push(`history ${number}: the thief is not found`)
        else presentations.push(found)
      } else {
        const ending = await runHistory(service, ofLane, first)
        if (ending === 'late') late += 1
        else if (ending !== 'passed') refused.push(`history ${number}: ${ending.refused}`)
      }
    }
  }
  const ended = new AbortController()
  const killing = kill(pair, random, ended.signal)
  await Promise.all(Array.from({ length: LANES }, (_, index) => lane(index)))
  ended.abort()
  report.figure('histories', total)
  report.figure('of them with a request that took longer than the window', late)
  report.figure('kills', await killing)
  report.failures('refused processes', refused)
  report.failures('thieves who are not found', unfound)
  report.figure('presentations until one is found, at most', Math.max(...presentations))
  const accounts = await Promise.all(
    sessions.map(token => send(pair[0].url, { ...calls.account(token), headers: bearer(token) }, false)),
  )
  report.expect(
    accounts.every(({ status }) => status === 200),
    'a session of a user has ended',
  )
  return report
}
