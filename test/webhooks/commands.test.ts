/** Webhooks on the command line (docs/operations.md, "Command line"). */
import t from 'tap'
import { build, newFile } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'
import { allowing, asRoot, createWebhook, getWebhook, receiver } from '../support/webhook-receiver.ts'

t.test('the operator creates, pauses, replays and deletes webhooks of a running service', async t => {
  const DATABASE_URL = await newFile(t)
  const hook = await receiver(t)
  const env = { ...allowing(hook), DATABASE_URL }
  const app = await build(t, { env })
  const run = (...args: string[]) => runCommand(['webhooks', ...args], env)
  const runJson = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)

  const { id, secret } = await runJson(
    'create',
    `${hook.url}?token=hidden-token`,
    '--types',
    'user.signed-up, user.deleted',
  )
  t.match(secret, /^whsec_/)
  t.match(await getWebhook(app, id), { types: ['user.signed-up', 'user.deleted'], url: hook.url })
  t.match((await run('list')).stdout, id)
  t.notMatch((await run('list')).stdout, /hidden-token|whsec_/)

  const { id: pingId } = await runJson('ping', id)
  await hook.arrived(1)
  t.same(hook.ids(), [pingId])
  t.match(await runJson('pause', id), { state: 'paused' })
  t.match(await runJson('resume', id), { state: 'enabled' })
  t.match((await run('resume', id, '--skip')).stderr, /No event of the webhook fails/)
  t.match(await runJson('replay', id, '--from', '2020-01-01T00:00:00Z'), { removedBefore: /^20/ })
  t.match(await runJson('rotate-secret', id), { secret: /^whsec_/, formerSecretExpiresAt: /Z$/ })
  t.match((await run('attempts', id)).stdout, pingId)
  t.equal((await run('delete', id)).code, 0)
  t.equal((await asRoot(app, { method: 'GET', url: `/admin/webhooks/${id}` })).statusCode, 404)
})

t.test('what is not valid is refused with the text of the HTTP API', async t => {
  const DATABASE_URL = await newFile(t)
  const hook = await receiver(t)
  const env = { ...allowing(hook), DATABASE_URL }
  const app = await build(t, { env })
  await createWebhook(app, { url: hook.url })
  const run = (...args: string[]) => runCommand(['webhooks', ...args], env)
  for (const args of [
    ['create', 'https://127.0.0.1/'],
    ['create', 'ftp://example.com/'],
    ['create', hook.url, '--types', 'user.unheard-of'],
    ['pause', '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'],
    ['replay', '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70', '--from', 'yesterday'],
  ]) {
    const { code, stderr } = await run(...args)
    t.not(code, 0, args.join(' '))
    t.not(stderr.trim(), '')
    t.notMatch(stderr, /\n\s+at /, 'no stack trace')
  }
})
