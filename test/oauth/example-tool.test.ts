/** The example of a command-line tool, against the service as a process with two workers (examples/cli). */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { asAdmin, cookie, PASSWORD, temporaryFolder } from '../support/build.ts'
import { OAUTH_ENV } from '../support/oauth.ts'
import { TOOL } from '../support/oauth-devices.ts'
import { startServer, stopping, UNMEASURED } from '../support/process.ts'

const run = promisify(execFile)
const SCRIPT = join(import.meta.dirname, '..', '..', 'examples', 'cli', 'tool.js')

t.test('the tool signs in, refreshes in several processes at once, and signs out', async t => {
  const port = await freePort()
  const ISSUER = `http://127.0.0.1:${port}`
  const env = { ...OAUTH_ENV, PORT: String(port), PUBLIC_URL: ISSUER, WORKERS: '2' }
  await startServer(t, { env })
  const json = { 'content-type': 'application/json' }
  const post = async (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(ISSUER + path, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) })
  const { id: CLIENT_ID } = (await (await post('/admin/clients', TOOL, asAdmin)).json()) as { id: string }
  const email = 'ann@example.test'
  const { accessToken: token } = (await (
    await post('/account/sign-up', { email, password: PASSWORD })
  ).json()) as { accessToken: string }
  const submit = async (path: string, values: Record<string, string>) =>
    (
      await fetch(ISSUER + path, {
        method: 'POST',
        headers: cookie(token),
        body: new URLSearchParams(values),
      })
    ).text()

  const TOKENS = join(temporaryFolder(t), 'config', 'tokens.json')
  const options = { env: { ...process.env, ...UNMEASURED, ISSUER, CLIENT_ID, TOKENS, NO_BROWSER: '1' } }
  const tool = spawn(process.execPath, [SCRIPT, 'sign-in'], options)
  stopping(t, tool)
  const exited = once(tool, 'exit')
  const [shown] = await once(tool.stdout, 'data')
  const [, userCode = ''] = /enter (\S+)/.exec(String(shown)) ?? []
  const [, request = ''] =
    /name="request" value="([^"]+)"/.exec(await submit('/device', { user_code: userCode })) ?? []
  t.match(await submit('/device/decision', { request, decision: 'approve' }), 'The device is connected')
  t.strictSame(await exited, [0, null])

  t.equal(statSync(TOKENS).mode & 0o777, 0o600)
  const account = async () => (await run(process.execPath, [SCRIPT, 'account'], options)).stdout.trim()
  t.equal(await account(), email)
  const first = JSON.parse(readFileSync(TOKENS, 'utf8'))
  writeFileSync(TOKENS, JSON.stringify({ ...first, accessToken: 'expired', expiresAt: 0 }))
  t.strictSame(await Promise.all([1, 2, 3].map(account)), [email, email, email])
  t.not(JSON.parse(readFileSync(TOKENS, 'utf8')).accessToken, 'expired')
  t.equal(await account(), email)

  const { refreshToken } = JSON.parse(readFileSync(TOKENS, 'utf8'))
  await run(process.execPath, [SCRIPT, 'sign-out'], options)
  const refused = () => account().catch(({ stderr }: { readonly stderr: string }) => stderr)
  t.match(await refused(), 'Sign in first')
  writeFileSync(TOKENS, JSON.stringify({ refreshToken, expiresAt: 0 }))
  t.match(await refused(), 'Your access has ended')
})
