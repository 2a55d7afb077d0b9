/** The command line: help, exit codes, error messages, and no secrets in output (CLI; docs/design.md, "Account life cycle"). */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import t from 'tap'
import { coreCommands, featureCommands } from '#process/cli/commands'
import packageJson from '../../package.json' with { type: 'json' }
import { temporaryFolder } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'
import { loadConfig } from '../support/config.ts'

const CANARY = 'canary-password-7'

t.test('--help lists every command and the exit codes; it is shown when the command is missing', async t => {
  const [help, ofOne, none] = await Promise.all(
    [['--help'], ['users', 'list', '--help'], []].map(args => runCommand(args)),
  )
  t.match(help, { code: 0, stderr: '' })
  for (const name of ['users', 'sessions', 'events', 'keys', 'copy', 'seed', 'settings', 'texts', 'mail'])
    t.match(help?.stdout, `\n  ${name} `)
  for (const shown of [help, ofOne]) t.match(shown?.stdout, /Exit codes: 0 .*, 1 .*, 2 /)
  for (const name of [
    'search',
    'email',
    'disabled',
    'limit',
    'cursor',
    'sort',
    'count',
    'json',
    'database',
  ]) {
    t.match(ofOne?.stdout, `--${name}`)
  }
  t.match(none, { code: 2, stdout: '', stderr: /^Usage: / })
})

t.test('--version prints the version of the package', async t => {
  for (const flag of ['--version', '-V'])
    t.strictSame(await runCommand([flag]), { code: 0, stdout: `${packageJson.version}\n`, stderr: '' })
})

t.test('every command, argument with a meaning, option and setting has a description', async t => {
  const program = new Command('gatehouse')
  coreCommands(program)
  t.strictSame(await featureCommands(program), [])
  const check = (command: Command): void => {
    for (const each of [...command.commands, ...command.options])
      t.not(
        each instanceof Command ? each.description() : each.description,
        '',
        `${command.name()} ${each instanceof Command ? each.name() : each.flags}`,
      )
    command.commands.forEach(check)
  }
  check(program)
  const { results } = JSON.parse((await runCommand(['settings', '--json'])).stdout)
  for (const { name, description } of results) t.match(description, /^\S.*\S$/, name)
})

t.test('keys new prints a new key that ADMIN_KEY and JWT_SECRET accept', async t => {
  const keys = await Promise.all([runCommand(['keys', 'new']), runCommand(['keys', 'new'])])
  for (const key of keys) t.match(key, { code: 0, stderr: '', stdout: /^[\w-]{43}\n$/ })
  t.not(keys[0]?.stdout, keys[1]?.stdout)
  const { code, stdout } = await runCommand(['keys', 'new', '--json'])
  t.equal(code, 0)
  t.match(stdout, /^\{"key":"[\w-]{43}"\}\n$/)
})

t.test('keys new --algorithm prints a private key that JWT_PRIVATE_KEY accepts', async t => {
  for (const algorithm of ['EdDSA', 'ES256']) {
    const keys = await Promise.all(
      [[], [], ['--json']].map(more => runCommand(['keys', 'new', '--algorithm', algorithm, ...more])),
    )
    for (const key of keys) t.match(key, { code: 0, stderr: '' })
    const [one = '', two = '', json = ''] = keys.map(({ stdout }) => stdout)
    t.match(one, /^-----BEGIN PRIVATE KEY-----\n[\w+/=\n]+\n-----END PRIVATE KEY-----\n$/)
    t.not(one, two)
    for (const JWT_PRIVATE_KEY of [one, JSON.parse(json).key])
      t.doesNotThrow(() => loadConfig({ JWT_ALGORITHM: algorithm, JWT_PRIVATE_KEY }))
  }
  const { code, stderr } = await runCommand(['keys', 'new', '--algorithm', 'RS256'])
  t.equal(code, 2)
  t.match(stderr, /^--algorithm must be one of EdDSA, ES256$/m)
})

t.test('errors are one sentence without the values, and nothing is created', async t => {
  const folder = temporaryFolder(t)
  const missing = join(folder, 'missing.db')
  const env = { DATABASE_URL: `sqlite:${missing}`, NODE_ENV: 'test' }
  const remote = `mysql://root:${CANARY}@localhost/x`
  type Case = [args: string[], code: number, sentence: RegExp, env?: Record<string, string>]
  const cases: Case[] = [
    [['users', 'list'], 1, /^There is no file .*missing\.db/],
    [['users', 'list', '--database', remote], 2, /^--database must be sqlite:/],
    [['users', 'list', `--database=${remote}`], 2, /^--database must be sqlite:/],
    [['users', 'list', '--limit', '101'], 2, /^--limit must be an integer from 1 to 100$/m],
    [['users', 'list', `--pasword=${CANARY}`], 2, /unknown option/],
    [['users', 'get', 'a', CANARY], 2, /too many arguments/],
    [['keys', 'create', '--scopes', 'users:read'], 2, /required option '--name <name>'/],
    [['keys', 'create', '--name', 'a key'], 2, /required option '--scopes <scopes>'/],
    [
      ['keys', 'create', '--name', 'a\nkey', '--scopes', 'users:read'],
      2,
      /^The name must not have line breaks/,
    ],
    [
      ['keys', 'create', '--name', 'a key', '--scopes', CANARY],
      2,
      /^The scopes.0 must be one of users:read,/,
    ],
    [
      ['keys', 'create', '--name', 'a key', '--scopes', 'users:read', '--expires', CANARY],
      2,
      /^--expires must be a timestamp/,
    ],
    [['seed', '--users', '0'], 2, /^--users must be an integer from 1 to /],
    [['seed', '--users', '1', '--password', 'x7'], 2, /^--password must have 8 to 128 characters/],
    [['seed', '--users', '1'], 1, /^NODE_ENV is production/, { NODE_ENV: 'production' }],
    [
      ['users', 'list'],
      2,
      /^The configuration is not valid:\n {2}DATABASE_URL must/,
      { DATABASE_URL: remote },
    ],
    [['seed', '--users', '1', '--tokens', 'x'], 2, /JWT_SECRET is/, { DATABASE_URL: 'postgres://host/x' }],
  ]
  const ended = await Promise.all(
    cases.map(([args, , , changed]) => runCommand(args, { ...env, ...changed })),
  )
  for (const [index, [, code, sentence]] of cases.entries()) {
    t.match(ended[index], { code, stdout: '', stderr: sentence }, sentence.source)
    t.notMatch(ended[index]?.stderr, CANARY)
    t.notMatch(ended[index]?.stderr, /\n {4}at /, 'no stack')
  }
  t.notOk(existsSync(missing))
})

t.test('an unusable file is named as given, but a URL in its place is not', async t => {
  const folder = temporaryFolder(t)
  const env = { DATABASE_URL: `sqlite:${join(folder, 'test.db')}`, JWT_SECRET: '', NODE_ENV: 'test' }
  t.equal((await runCommand(['seed', '--users', '1'], env)).code, 0)
  const missing = join(folder, 'missing', 'file')
  const cases: [args: string[], sentence: string][] = [
    [
      ['users', 'import', missing],
      `The argument [file] names a file that cannot be read: ${missing} (ENOENT: no such file or directory)\n`,
    ],
    [
      ['users', 'import', folder],
      `The argument [file] names a file that cannot be read: ${folder} (EISDIR: illegal operation on a directory)\n`,
    ],
    [
      ['users', 'export', '--file', missing],
      `--file names a file that cannot be written: ${missing} (ENOENT: no such file or directory)\n`,
    ],
    [['users', 'export', '--file', folder], `--file names a path that is not a regular file: ${folder}\n`],
    [
      ['seed', '--users', '1', '--tokens', missing],
      `--tokens names a file that cannot be written: ${missing} (ENOENT: no such file or directory)\n`,
    ],
    [['copy', '--from', `sqlite:${missing}`, '--to', 'postgres://h/d'], `there is no file ${missing}\n`],
    [['users', 'list', '--database', `sqlite:${missing}`], `There is no file ${missing}`],
    [
      ['users', 'import', `postgres://u:${CANARY}@h/d`],
      'The argument [file] names a file that cannot be read (ENOENT: no such file or directory)\n',
    ],
  ]
  const ended = await Promise.all(cases.map(([args]) => runCommand(args, env)))
  for (const [index, [args, sentence]] of cases.entries()) {
    t.match(ended[index], { code: 1, stdout: '', stderr: sentence }, args.join(' '))
    t.notMatch(ended[index]?.stderr, CANARY)
    t.notMatch(ended[index]?.stderr, /partial|\n {4}at /)
  }
})

t.test('each choice of an option is listed once', async t => {
  const choices = 'createdAt, -createdAt, firstName, -firstName, lastName, -lastName'
  const help = await runCommand(['users', 'list', '--help'])
  t.equal(help.stdout.replaceAll(/\s+/g, ' ').split(choices).length, 2)
  const { stderr } = await runCommand(['users', 'list', '--sort', 'email'])
  t.equal(stderr, '--sort must be one of -createdAt, createdAt, firstName, -firstName, lastName, -lastName\n')
})
