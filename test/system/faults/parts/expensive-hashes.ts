/**
 * Concurrent failed sign-ins to an account with an expensive imported hash, while another user signs in repeatedly: the
 * other user does not wait for them. A second instance without attack shows the effect of the machine's load on sign-ins.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ADMIN_KEY, PASSWORD } from '../../../support/build.ts'
import { startServer } from '../../../support/process.ts'
import { send } from '../../instances/http.ts'
import { milliseconds, quantile, Report, spread } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'

const ATTACKERS = 12

/** Milliseconds of each attack. */
const DURATION = 6_000

/** Sign-ins that measure the undisturbed duration. */
const UNDISTURBED = 100

/**
 * Bound of the other user's slowest sign-in: a multiple of the undisturbed median, or of the slowest on the instance
 * without attack if the machine is busy; milliseconds in any case.
 */
const WORST = { ofMedian: 10, ofControl: 3, milliseconds: 3_000 }

const TAIL = '$c29tZXNhbHRzb21lc2FsdA$c29tZXNhbHRzb21lc2FsdA'

/** The most expensive hashes that an import accepts, of no known password. */
const HASHES = {
  argon2: `$argon2id$v=19$m=262144,t=16,p=16${TAIL}`,
  bcrypt: '$2b$14$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
  scrypt: `$scrypt$ln=18,r=8,p=4${TAIL}`,
}

const OTHER = 'other@example.com'

const post = (url: string, path: string, body: object) =>
  send(url, { method: 'POST', path, headers: { 'x-admin-key': ADMIN_KEY }, body }, false)

const signIn = async (url: string, email: string, password: string) => {
  const response = await post(url, '/account/sign-in', { email, password })
  return { ...response, took: response.respondedAt - response.sentAt }
}

export const run = async ({ context }: FaultPart): Promise<Report> => {
  const report = new Report(`expensive hashes: sign-ins of others while ${ATTACKERS} clients try passwords`)
  const [attacked, control] = [await startServer(context), await startServer(context)]

  const add = async (url: string, email: string, secret: object): Promise<void> => {
    const { status, text } = await post(url, '/admin/users', { email, ...secret })
    if (status !== 201) throw new Error(`POST /admin/users returned ${status}: ${text}`)
  }
  for (const { url } of [attacked, control]) await add(url, OTHER, { password: PASSWORD })
  for (const [kind, passwordHash] of Object.entries(HASHES))
    await add(attacked.url, `${kind}@example.com`, { passwordHash })

  /** Durations of the other user's sign-ins, alternating between both instances, until there are enough. */
  const others = async (enough: (count: number) => boolean) => {
    const took = { attacked: [] as number[], control: [] as number[] }
    while (!enough(took.attacked.length)) {
      for (const [name, { url }] of Object.entries({ attacked, control })) {
        const response = await signIn(url, OTHER, PASSWORD)
        report.expect(response.status === 200, `a sign-in of another user returned ${response.status}`)
        took[name as keyof typeof took].push(response.took)
      }
      await sleep(5)
    }
    return took
  }

  // The first sign-ins start the threads.
  await others(count => count === 20)
  const { attacked: undisturbed } = await others(count => count === UNDISTURBED)
  const median = quantile(undisturbed, 0.5)
  report.figure('undisturbed', spread(undisturbed))

  for (const kind of Object.keys(HASHES)) {
    const end = performance.now() + DURATION
    const statuses = new Map<number, number>()
    const attack = async (): Promise<void> => {
      while (performance.now() < end) {
        const { status, text } = await signIn(attacked.url, `${kind}@example.com`, 'a guess')
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (status !== 401 && status !== 503) report.failure(`a guess returned ${status}: ${text}`)
        // As `Retry-After` asks.
        if (status === 503) await sleep(1_000)
      }
    }
    const attackers = Array.from({ length: ATTACKERS }, attack)
    const took = await others(() => performance.now() >= end)
    const worst = quantile(took.attacked, 1)
    const limit = Math.min(
      Math.max(median * WORST.ofMedian, quantile(took.control, 1) * WORST.ofControl),
      WORST.milliseconds,
    )
    const loginThrottle = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')
    report.figure(`beside ${kind}`, `${spread(took.attacked)} in ${took.attacked.length}; ${loginThrottle}`)
    report.figure('  not attacked', `${spread(took.control)}; limit ${milliseconds(limit)}`)
    report.expect(worst <= limit, `${kind}: the worst sign-in took ${milliseconds(worst)}`)
    await Promise.all(attackers)
  }

  const { status } = await post(attacked.url, '/account/sign-up', {
    email: 'new@example.com',
    password: PASSWORD,
  })
  report.expect(status === 201, `a sign-up afterwards returned ${status}`)
  report.expect((await attacked.stop('SIGTERM')) === 0, 'the service does not stop in order')
  return report
}
