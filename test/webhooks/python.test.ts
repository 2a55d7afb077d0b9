/** Signatures of webhooks, verified by the libraries of PyPI. Skipped where Python or its package index is missing. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { build, temporaryFolder } from '../support/build.ts'
import { allowing, createWebhook, type Received, receiver } from '../support/webhook-receiver.ts'

const run = promisify(execFile)

/** Milliseconds. */
const LIMIT = 60_000

const INSTALL = ['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check']
const PACKAGES = ['standardwebhooks', 'svix']

const VERIFY = `
import json, sys
from standardwebhooks import Webhook
from svix import Webhook as Svix
secret, body, headers = json.loads(sys.argv[1])
for verifier in (Webhook(secret), Svix(secret)):
    verifier.verify(body, headers)
    try:
        verifier.verify(body + " ", headers)
        sys.exit("accepted another body")
    except Exception as error:
        print(type(error).__name__)
`

const folder = temporaryFolder(t)
const skip = await run('python3', [...INSTALL, '--target', folder, ...PACKAGES], { timeout: LIMIT }).then(
  () => false,
  () => 'needs python3 with pip, and its package index',
)

t.test('W9 the verifiers of PyPI accept what is sent, and not another body', { skip }, async t => {
  const hook = await receiver(t)
  const app = await build(t, { env: allowing(hook) })
  const { secret } = await createWebhook(app, { url: hook.url })
  const [message] = (await hook.arrived(1)) as readonly [Received]
  const input = JSON.stringify([secret, message.text, message.headers])
  const options = { env: { ...process.env, PYTHONPATH: folder }, timeout: LIMIT }
  const { stdout } = await run('python3', ['-c', VERIFY, input], options)
  t.equal(stdout, 'WebhookVerificationError\nWebhookVerificationError\n')
})
