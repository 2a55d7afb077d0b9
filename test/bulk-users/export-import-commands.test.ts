/** `npm run cli -- users export|import`: the same lines as the API (CLI; docs/design.md, "Account life cycle"). */
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { toLines } from '#http/validation/ndjson'
import { asAdmin, build, freshEmail, JWT_SECRET, signIn, signUp, temporaryFolder } from '../support/build.ts'
import { EXPORT, exportAll, fromLines, importAll } from '../support/bulk-users.ts'
import { pipeToCli, runCli, runCommand } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { createDatabase, holdReaders } from '../support/postgres.ts'

t.test('export and import have the same lines as the API', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const folder = temporaryFolder(t)
    const file = join(folder, 'users.ndjson')
    const env = { DATABASE_URL: await engine.newDatabase(t), JWT_SECRET }
    const app = await build(t, { env })
    const people = [await signUp(app, { firstName: 'Zoë' }), await signUp(app)]
    await importAll(app, [{ email: freshEmail(), createdAt: '2001-02-03T04:05:06.007Z', disabled: true }])

    const written = await runCommand(['users', 'export'], env)
    t.match(written, { code: 0, stderr: '' })
    t.equal(written.stdout, (await app.inject({ url: EXPORT, headers: asAdmin })).body)
    t.equal(fromLines(written.stdout).length, 3)
    writeFileSync(file, 'what was there')
    chmodSync(file, 0o644)
    const toFile = await runCommand(['users', 'export', '--password-hashes', '--file', file], env)
    t.strictSame(toFile, { code: 0, stdout: `3 users in ${file}\n`, stderr: '' })
    const lines = readFileSync(file, 'utf8')
    t.equal(lines, (await app.inject({ url: `${EXPORT}?passwordHashes=true`, headers: asAdmin })).body)
    t.equal(statSync(file).mode & 0o777, 0o600, 'for its owner alone')
    t.strictSame(readdirSync(folder), ['users.ndjson'])

    const [one, other] = [await engine.build(t), await engine.newDatabase(t)]
    const to = { DATABASE_URL: other, JWT_SECRET }
    const target = await build(t, { env: to })
    const more = [
      { email: 'nobody', admin: 1 },
      { email: people[0]?.email },
      { email: freshEmail(), id: people[1]?.id },
    ]
    writeFileSync(file, `\ufeff${lines}\nnonsense\n${toLines(more).trimEnd()}`)
    const imported = await runCommand(['users', 'import', file, '--json'], to)
    t.match(imported, { code: 1, stderr: /^6 lines\n/ })
    t.strictSame(fromLines(imported.stdout), await importAll(one, readFileSync(file)))
    t.match(fromLines(imported.stdout).at(-1), { status: 'finished', created: 3, exists: 1, failed: 3 })
    t.strictSame(await exportAll(target, '?passwordHashes=true'), fromLines(lines))
    for (const { email } of people) t.equal((await signIn(target, email)).statusCode, 200)
    const { results } = (
      await target.inject({ url: '/admin/events?type=user.created', headers: asAdmin })
    ).json()
    t.equal(results.length, 3)
    for (const { actor } of results) t.strictSame(actor, { type: 'system', id: null })

    t.strictSame(await pipeToCli(lines, ['users', 'import'], to), {
      code: 0,
      stdout: '0 users created, 3 already existed, 0 lines failed\n',
      stderr: '3 lines\n',
    })
  }),
)

t.test('the first failed lines are reported without their values', async t => {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'test.db')}`
  await build(t, { env: { DATABASE_URL } })
  const failing = Array.from({ length: 25 }, () => ({ email: 'canary', '\u001b[2J': 1 }))
  const { code, stdout, stderr } = await pipeToCli(
    toLines([{ email: freshEmail() }, ...failing]),
    ['users', 'import'],
    { DATABASE_URL },
  )
  t.match({ code, stdout }, { code: 1, stdout: '1 user created, 0 already existed, 25 lines failed\n' })
  t.match(stderr, /^Line 2: The \ufffd\[2J is not allowed; The email must be a valid e-mail address$/m)
  t.equal(stderr.match(/^Line /gm)?.length, 20)
  t.match(stderr, /^More lines have failed: --json prints all of them$/m)
  t.notMatch(stderr, 'canary')
  t.notMatch(stderr, '\u001b')
  const folder = await runCommand(['users', 'import', temporaryFolder(t)], { DATABASE_URL })
  t.match(folder, {
    code: 1,
    stdout: '',
    stderr: /^The argument \[file\] names a file that cannot be read: .* \(EISDIR/,
  })
  t.notMatch(folder.stderr, /\n {4}at /)
})

t.test('Ctrl-C ends a waiting import; every reported line is stored', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const DATABASE_URL = await engine.newDatabase(t)
    const app = await build(t, { env: { DATABASE_URL } })
    const running = runCli(['users', 'import', '--json'], { DATABASE_URL }, 'pipe')
    running.process.stdin?.write(toLines([{ email: 'ann@example.com' }]))
    while (!running.stdout().includes('\n')) await sleep(20)
    running.process.kill('SIGINT')
    const { code, stdout, stderr } = await running.ended
    t.equal(code, 1)
    const [created, stopped] = fromLines(stdout)
    t.match(created, { line: 1, status: 'created' })
    const errors = { global: ['This instance is shutting down'] }
    t.strictSame(
      stopped,
      { status: 'stopped', created: 1, exists: 0, failed: 0, errors },
      'as the API has it',
    )
    t.match(stderr, /^Stopped before the end: run it again/m)
    t.equal((await app.services.users.find('ann@example.com')).id, created?.id)
  }),
)

t.test('the reader of an export may stop early', async t => {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'test.db')}`
  const app = await build(t, { env: { DATABASE_URL } })
  await importAll(
    app,
    Array.from({ length: 2_000 }, () => ({ email: freshEmail(), firstName: 'x'.repeat(100) })),
  )
  const running = runCli(['users', 'export'], { DATABASE_URL })
  running.process.stdout?.once('data', () => running.process.stdout?.destroy())
  const { code, stderr } = await running.ended
  t.strictSame({ code, stderr }, { code: 1, stderr: '' })
})

t.test('an export file is complete or absent, and only regular files are replaced', async t => {
  const folder = temporaryFolder(t)
  const DATABASE_URL = await createDatabase(t)
  await build(t, { env: { DATABASE_URL, JWT_SECRET } })
  const exportTo = (file: string) => runCli(['users', 'export', '--file', file], { DATABASE_URL })

  const file = join(folder, 'users.ndjson')
  writeFileSync(file, 'what was there')
  const hold = await holdReaders(DATABASE_URL)
  const stopped = exportTo(file)
  await hold.arrival()
  t.equal(readdirSync(folder).length, 2, 'one in the making')
  stopped.process.kill('SIGINT')
  while (!stopped.stderr().includes('Stopping')) await sleep(20)
  await hold.end()
  t.match(await stopped.ended, {
    code: 1,
    stdout: '',
    stderr: /^Stopped before the end: nothing is written$/m,
  })
  t.strictSame(readdirSync(folder), ['users.ndjson'])
  t.equal(readFileSync(file, 'utf8'), 'what was there')

  const link = join(folder, 'link')
  symlinkSync(file, link)
  const [linked, nowhere] = await Promise.all([exportTo(link).ended, exportTo(join(folder, 'x', 'y')).ended])
  t.match(linked, { code: 1, stdout: '', stderr: /^--file names a path that is not a regular file: / })
  t.match(nowhere, { code: 1, stdout: '', stderr: /^--file names a file that cannot be written/ })
  t.equal(readFileSync(file, 'utf8'), 'what was there')
})
