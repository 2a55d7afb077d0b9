/**
 * Histories of revocations (docs/verifying.md): a verifier in another process uses tokens all the time, while tokens are revoked, and service,
 * network and verifier are frozen. No token may be accepted later than a second after its revocation was acknowledged.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { asAdmin, bearer, type Context } from './build.ts'
import type { Random } from './random.ts'

export const VERIFIER = join(import.meta.dirname, '..', '..', 'verifier', 'verifier.ts')

/** Milliseconds. */
const BOUND = 1_000
const LONGEST_LIFE = 8_000
const LONGEST_FREEZE = 2_500
/** Milliseconds between two sign-ins, and between two faults at most. */
const SIGN_INS = 30
const FAULTS = 1_500
/** Milliseconds for which a revoked token is still used. */
const WATCHED = 5_000

export interface Services {
  readonly urls: readonly string[]
  readonly processes: readonly ChildProcess[]
  readonly adminKey: string
}

export interface History {
  readonly sessions: number
  readonly verifications: number
  readonly hits: number
  readonly faults: number
  /** Milliseconds from each acknowledged revocation to the last time when its token was accepted: negative if that was before. */
  readonly delays: readonly number[]
  /** Those above a second. */
  readonly late: readonly number[]
}

interface Session {
  readonly token: string
  readonly acknowledgedAt: number
}

/** Of all histories of the process: they may share a database. */
let users = 0

/** The clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6

const forked = (t: Context, file: string, env: Record<string, string>): ChildProcess => {
  const child = fork(join(import.meta.dirname, file), [], { env: { ...process.env, ...env } })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

/**
 * @param milliseconds for which tokens are issued and revoked. @param verifier the module of the verifier, to break its rules.
 */
export const runHistory = async (
  t: Context,
  services: Services,
  random: Random,
  milliseconds: number,
  verifier = VERIFIER,
): Promise<History> => {
  const { urls, processes, adminKey } = services
  const headers = { ...asAdmin, 'x-admin-key': adminKey }
  const anyUrl = (): string => random.pick(urls) ?? ''
  const proxy = forked(t, 'proxy-process.ts', { TARGETS: urls.join() })
  const [{ port }] = (await once(proxy, 'message')) as [AddressInfo]
  const verifying = forked(t, 'verifier-process.ts', {
    BASE_URL: `http://127.0.0.1:${port}`,
    VERIFIER: verifier,
    ADMIN_KEY: adminKey,
  })
  const revoked: Session[] = []
  let sessions = 0
  let faults = 0

  const post = async (path: string, given: Record<string, string>, body?: object): Promise<Response> =>
    fetch(anyUrl() + path, {
      method: 'POST',
      headers: { ...given, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    })

  /** A session that lives for a while. One that cannot be opened or revoked, because of a fault, is left. */
  const live = async (): Promise<void> => {
    sessions += 1
    users += 1
    const email = `history.${process.pid}.${users}@example.com`
    const created = (await (await post('/admin/users', headers, { email })).json()) as { id: string }
    const opened = await post(`/admin/users/${created.id}/impersonate`, headers)
    if (opened.status !== 201 && opened.status !== 200) return
    const { accessToken: token } = (await opened.json()) as { accessToken: string }
    verifying.send({ add: [token] })
    await sleep(random.integer(0, Math.min(LONGEST_LIFE, milliseconds)))
    const { status } = await post('/account/sign-out', bearer(token))
    if (status === 204) revoked.push({ token, acknowledgedAt: now() })
  }

  const end = now() + milliseconds
  const freeze = async (): Promise<void> => {
    const all = [proxy, verifying, ...processes]
    while (now() < end) {
      await sleep(random.integer(0, FAULTS))
      const frozen = random.pick(all)
      frozen?.kill('SIGSTOP')
      await sleep(random.integer(0, LONGEST_FREEZE))
      frozen?.kill('SIGCONT')
      faults += 1
    }
  }
  const freezing = freeze()
  const lives: Promise<unknown>[] = []
  while (now() < end) {
    lives.push(live().catch(() => undefined))
    await sleep(random.integer(0, 2 * SIGN_INS))
  }
  await Promise.all([freezing, ...lives])
  await sleep(Math.min(WATCHED, milliseconds / 2))

  const asked = once(verifying, 'message')
  verifying.send({ remove: revoked.map(({ token }) => token) })
  const [{ times, verifications, statistics }] = await asked
  const delays = revoked.flatMap(({ acknowledgedAt }, index) =>
    times[index] === 0 ? [] : [times[index] - acknowledgedAt],
  )
  for (const child of [verifying, proxy]) child.kill('SIGKILL')
  return {
    ...{ sessions, verifications, faults, delays },
    hits: statistics.hits,
    late: delays.filter(delay => delay > BOUND),
  }
}
