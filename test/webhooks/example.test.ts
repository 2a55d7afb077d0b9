/** The receiver of examples/webhooks. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { build, type Context, signUp } from '../support/build.ts'
import { until } from '../support/until.ts'
import { asRoot, attemptsOf, createWebhook, receiver } from '../support/webhook-receiver.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const FILE = join(PROJECT, 'examples/webhooks/receiver.js')
const WAIT = 20_000

const startExample = async (t: Context, secret: string, port: number) => {
  const child = spawn(process.execPath, [FILE], { env: { WEBHOOK_SECRET: secret, PORT: String(port) } })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill()
    await ended
  })
  let output = ''
  child.stdout.on('data', chunk => {
    output += chunk
  })
  await once(child.stderr, 'data')
  return () => output
}

t.test('the receiver handles each event once, and refuses what is not signed', async t => {
  // Its port, because the secret follows from the webhook, which needs the URL.
  const placeholder = await receiver(t)
  const { host } = placeholder
  const app = await build(t, { env: { WEBHOOK_ALLOWED_HOSTS: host } })
  const { id, secret } = await createWebhook(app, { url: `http://${host}/`, types: ['user.signed-up'] })
  await placeholder.close()
  const output = await startExample(t, secret, Number(host.split(':')[1]))
  const user = await signUp(app)
  await until(output, text => text.includes(user.id), WAIT)
  t.match(output(), /type: 'user\.signed-up'/)
  const attemptsOnce = (count: number) =>
    until(
      () => attemptsOf(app, id),
      each => each.length === count,
      WAIT,
    )
  // A replay drops the record of an attempt that is not stored yet.
  await attemptsOnce(1)
  const replay = {
    method: 'POST',
    url: `/admin/webhooks/${id}/replay`,
    payload: { from: '2020-01-01T00:00:00Z' },
  } as const
  await asRoot(app, replay)
  t.same(
    (await attemptsOnce(2)).map(({ outcome }) => outcome),
    ['delivered', 'delivered'],
  )
  t.equal(output().split(user.id).length - 1, output().includes('actor') ? 2 : 1, 'handled once')
  const forged = await fetch(`http://${host}/`, { method: 'POST', body: '{}' })
  t.equal(forged.status, 401)
})
