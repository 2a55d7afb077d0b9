/**
 * Kills a process that delivers to a webhook again and again while events are written. Every event must arrive at least once and in order
 * (docs/design.md, "Webhooks").
 */
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { build, type Context } from '../support/build.ts'
import { spawnScript } from '../support/process.ts'
import type { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { allowing, createWebhook, receiver } from '../support/webhook-receiver.ts'
import { type Kills, readLog } from './consumer-kills.ts'

/** Milliseconds of load before a kill. */
const LOAD = { min: 100, max: 900 }

/** Milliseconds by which the clock of each process is ahead of the one before, so that a killed one has no lease any more. */
const LEASE = 30_000

/** Milliseconds until a process that does not start, or deliveries that do not get to the end, count as failed. */
const WAIT = 60_000

const runAndKill = async (t: Context, env: Record<string, string>, load: number): Promise<void> => {
  const child = spawnScript(['test/crash/consumer-process.ts'], env, 'pipe')
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  const ready = once(child.stdout as Readable, 'data')
  await Promise.race([ready, exited, sleep(WAIT, undefined, { ref: false })])
  await sleep(load)
  child.kill('SIGKILL')
  await exited
}

/** @param databaseUrl of a database with the schema of the service. */
export const killDeliveries = async (
  t: Context,
  databaseUrl: string,
  random: Random,
  kills: number,
): Promise<Kills> => {
  const hook = await receiver(t)
  const env = { DATABASE_URL: databaseUrl, ...allowing(hook) }
  const creator = await build(t, { env })
  await createWebhook(creator, { url: hook.url })
  await creator.close()
  for (let kill = 1; kill <= kills; kill += 1)
    await runAndKill(t, { ...env, CLOCK_OFFSET: String(kill * LEASE) }, random.integer(LOAD.min, LOAD.max))
  const last = await build(t, { env, clock: () => Date.now() + (kills + 1) * LEASE })
  const log = await readLog(last)
  const arrived = await until(
    () => [...new Set(hook.ids())],
    ids => ids.length >= log.length,
    WAIT,
  )
  const wrong = log.findIndex((id, index) => arrived[index] !== id)
  const failures = wrong === -1 ? [] : [`event ${wrong + 1} of ${log.length} did not arrive in its place`]
  return { kills, events: log.length, repeated: hook.ids().length - arrived.length, failures }
}
