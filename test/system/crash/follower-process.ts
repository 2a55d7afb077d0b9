/**
 * A process that writes events without end, with a consumer that appends the id of each event to `HANDLED_FILE`, and the webhooks of its
 * database. See `follower-kills.ts`.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { newEvent, OPERATOR } from '#core/audit-log/event'
import type { LoggedEvent } from '#feature/declaration'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import { buildApp } from '../../../src/app.ts'
import { watching } from '../../features/watching.ts'
import { JWT_SECRET, signUp } from '../../support/build.ts'
import { quickHashing } from '../../support/fake-hashing.ts'
import { ENCRYPTION_KEY } from '../../support/webhook-receiver.ts'

/** Events that are written at once, and milliseconds between two such writes. */
const BATCH = 20
const INTERVAL = 20

/** Milliseconds that handling takes, about as long as writing: a kill finds the consumer amidst a page. */
const HANDLING = 1

const { DATABASE_URL = '', HANDLED_FILE = '', CLOCK_OFFSET = '', WEBHOOK_ALLOWED_HOSTS = '' } = process.env
const clock = () => Date.now() + Number(CLOCK_OFFSET)

const handle = async ({ id }: LoggedEvent): Promise<void> => {
  appendFileSync(HANDLED_FILE, `${id}\n`)
  await sleep(HANDLING)
}

const features = [watching(handle)]
const settings = {
  ...{ NODE_ENV: 'test', LOG_LEVEL: 'error', MAIL_URL: 'off', RATE_LIMIT: 'off' },
  ...{ DATABASE_URL, JWT_SECRET, ENCRYPTION_KEY, WEBHOOK_ALLOWED_HOSTS, CACHE_SIZE: '1000' },
}
const app = await buildApp(loadConfig(settings, allFeatures(features)), {
  ...{ features, clock, hasher: quickHashing },
  jobPace: { startWithin: 1, maxWait: 20 },
})
await app.ready()
// A test that is killed leaves no process behind.
process.stdin.once('end', () => process.exit()).resume()
const { id } = await signUp(app)
process.stdout.write('ready\n')
for (;;) {
  const events = Array.from({ length: BATCH }, () =>
    newEvent('user.changed', OPERATOR, id, clock(), { fields: ['firstName'] }),
  )
  await Promise.all(events.map(event => app.services.storage.events.record(event)))
  await sleep(INTERVAL)
}
