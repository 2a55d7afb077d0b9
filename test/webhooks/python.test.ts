/** Signatures of webhooks, verified by the library of PyPI. Skipped where Python, pip or its package index is missing. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { build, temporaryFolder } from '../support/build.ts'
import { allowing, createWebhook, type Received, receiver } from '../support/webhook-receiver.ts'

const run = promisify(execFile)

/** Milliseconds. */
const LIMIT = 30_000

/** Without a network it fails at once. */
const INSTALL = [
  ...['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check'],
  // Verifying needs none of its dependencies, which are for clients of an API.
  ...['--retries', '0', '--timeout', '10', '--no-deps', 'standardwebhooks'],
]

const VERIFY = `
import json, sys
from standardwebhooks import Webhook
secret, body, headers = json.loads(sys.argv[1])
Webhook(secret).verify(body, headers)
try:
    Webhook(secret).verify(body + " ", headers)
except Exception as error:
    print(type(error).__name__)
`

const folder = temporaryFolder(t)
const skip = await run('python3', [...INSTALL, '--target', folder], { timeout: LIMIT }).then(
  () => false,
  () => 'needs python3 with pip, and its package index: pip install standardwebhooks failed',
)

t.test('W9: the verifier of PyPI accepts what is sent, and not another body', { skip }, async t => {
  const hook = await receiver(t)
  const app = await build(t, { env: allowing(hook) })
  const { secret } = await createWebhook(app, { url: hook.url })
  const [message] = (await hook.arrived(1)) as readonly [Received]
  const input = JSON.stringify([secret, message.text, message.headers])
  const options = { env: { ...process.env, PYTHONPATH: folder }, timeout: LIMIT }
  const { stdout } = await run('python3', ['-c', VERIFY, input], options)
  t.equal(stdout, 'WebhookVerificationError\n')
})
