/** A real PgBouncer, where it is installed: session mode works, the others are refused (docs/scaling.md). */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { build, signIn, signUp, temporaryFolder } from '../support/build.ts'
import { newDatabase } from '../support/postgres.ts'

const skip = spawnSync('pgbouncer', ['--version']).status === 0 ? false : 'needs PgBouncer'

/** PgBouncer does not run as root. */
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

const startPgBouncer = async (t: Test, url: string, mode: string): Promise<string> => {
  const { hostname, port, username, password, pathname } = new URL(url)
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  const own = await freePort()
  const write = (name: string, text: string): string => {
    const file = join(folder, name)
    writeFileSync(file, text)
    if (isRoot) chownSync(file, NOBODY, NOBODY)
    return file
  }
  const users = write('users', `"${username}" "${password}"\n`)
  const file = write(
    'pgbouncer.ini',
    `[databases]
${pathname.slice(1)} = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = ${mode}
`,
  )
  const child = spawn('pgbouncer', [file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  let output = ''
  for await (const chunk of child.stderr) {
    output += chunk
    if (/process up/.test(output)) break
  }
  const pooled = new URL(url)
  pooled.host = `127.0.0.1:${own}`
  return pooled.href
}

t.test('D10: PgBouncer in session mode works', { skip }, async t => {
  const DATABASE_URL = await startPgBouncer(t, await newDatabase(t), 'session')
  const app = await build(t, { env: { DATABASE_URL } })
  const { email } = await signUp(app)
  t.equal((await signIn(app, email)).statusCode, 200)
})

for (const mode of ['transaction', 'statement'])
  t.test(`D10: PgBouncer in ${mode} mode is refused`, { skip }, async t => {
    const DATABASE_URL = await startPgBouncer(t, await newDatabase(t), mode)
    await t.rejects(build(t, { env: { DATABASE_URL } }), { message: /pool mode to session/ })
  })
