/** Each instance in turn is stopped by SIGTERM and started again, under load on kept connections: no request fails. */
import { setTimeout as sleep } from 'node:timers/promises'
import { bodyOf, type Call, calls, send } from './http.ts'
import { type Instance, startPair } from './instance.ts'
import type { Part } from './part.ts'
import { milliseconds, Report } from './report.ts'
import { Journal } from './response-checks.ts'
import { Balancer } from './rolling-client.ts'

/** Kept connections per instance, and milliseconds that each waits between two requests. */
const CONNECTIONS = 12
const REST = 15

const USERS = 20
const PASSWORD = 'a pass phrase that rolls along'

/** One of so many requests hashes a password; one of so many writes without hashing. */
const HASH_ONE_IN = 40
const WRITE_ONE_IN = 10

/** Milliseconds of load with both instances up. */
const TOGETHER = { min: 300, max: 900 }

/** Milliseconds until a started instance must be used again. */
const USED_AGAIN = 5_000

interface User {
  readonly email: string
  readonly token: string
}

const createUsers = async ({ url }: Instance): Promise<User[]> => {
  const users: User[] = []
  for (let number = 1; number <= USERS; number += 1) {
    const email = `rolling-${number}@example.com`
    const response = await send(url, calls.signUp(email, PASSWORD), false)
    users.push({ email, token: bodyOf(response).accessToken as string })
  }
  return users
}

export const runRolling = async ({ context, random, rounds, env }: Part): Promise<Report> => {
  const report = new Report('Rolling restart: SIGTERM under keep-alive load')
  const journal = new Journal()
  const pair = await startPair(context, { ...env, DRAIN_DELAY: '1s' })
  const users = await createUsers(pair[0])
  const balancer = new Balancer(pair, journal)
  let running = true
  let signUps = 0

  const choose = (): readonly [Call, expected: number] => {
    const { email, token } = random.pick(users) as User
    if (random.integer(1, HASH_ONE_IN) === 1) {
      if (random.integer(1, 2) === 1) return [calls.signIn(email, PASSWORD), 200]
      signUps += 1
      return [calls.signUp(`rolling-new-${signUps}@example.com`, PASSWORD), 201]
    }
    if (random.integer(1, WRITE_ONE_IN) === 1) return [calls.rename(token, `Roller ${signUps}`), 200]
    return [calls.account(token), 200]
  }
  const work = async (): Promise<void> => {
    const connections = balancer.connect()
    while (running) {
      await connections.send(...choose())
      await sleep(REST)
    }
    connections.close()
  }
  const load = Array.from({ length: CONNECTIONS }, work)

  const codes: (number | null)[] = []
  for (let round = 0; round < rounds; round += 1) {
    const instance = pair[(round % 2) as 0 | 1]
    await sleep(random.integer(TOGETHER.min, TOGETHER.max))
    codes.push(await instance.stop('SIGTERM'))
    await instance.start()
    if (!(await balancer.uses(instance, USED_AGAIN))) report.failure(`${instance.name} is not used again`)
  }
  await sleep(TOGETHER.min)
  running = false
  await Promise.all(load)
  await balancer.close()
  codes.push(...(await Promise.all(pair.map(instance => instance.stop('SIGTERM')))))

  report.figure('restarts', rounds)
  report.figure('responses', journal.responses)
  report.figure('of them with Connection: close', balancer.closed)
  report.figure('connections opened', balancer.opened)
  report.figure('slowest response', milliseconds(journal.slowest))
  report.failures('failed requests', journal.failures)
  report.failures(
    'exit codes other than 0',
    codes.filter(code => code !== 0).map(code => `an instance ended with ${code}`),
  )
  report.expect(balancer.closed >= rounds, 'hardly any response closed its connection')
  return report
}
