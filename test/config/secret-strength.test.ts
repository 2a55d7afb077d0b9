/**
 * Guessable secrets: an error in production, a warning elsewhere (docs/design.md, "Tokens and sessions" and "Failures and hostile input").
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { ConfigError } from '#base/settings/readers'
import { ADMIN_KEY, JWT_SECRET, temporaryFolder } from '../support/build.ts'
import { loadConfig } from '../support/config.ts'
import { inShortRun } from '../support/run.ts'

const NAMES = [
  ...['ADMIN_KEY', 'ADMIN_KEY_PREVIOUS', 'JWT_SECRET', 'JWT_SECRET_PREVIOUS'],
  ...['ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS'],
]

const STRONG = { ADMIN_KEY, JWT_SECRET, PUBLIC_URL: 'https://accounts.example.com' }

const attempt = (environment: Record<string, string>): { errors: string[]; warnings: readonly string[] } => {
  try {
    return { errors: [], warnings: loadConfig({ ...STRONG, ...environment }).warnings }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { errors: error.message.split('\n').slice(1), warnings: [] }
  }
}

const inProduction = (environment: Record<string, string>): string[] =>
  attempt({ ...environment, NODE_ENV: 'production' }).errors

const GUESSABLE = [
  'aaaa',
  'abc',
  '1',
  '0123456789',
  '0123456789abcdef',
  'abcdefghijklmnopqrstuvwxyz',
  'zyxwvutsrqponmlkjihgfedcba9876543210',
  'changeme',
  'Password123!',
  'password',
  'admin',
  'secret',
  'supersecret',
  'letmein',
  'qwertyuiopasdfghjklzxcvbnm',
  'deadbeef',
  '2026-11-21-',
].map(unit => unit.repeat(32).slice(0, 40))

/** The example of the documents, and variants of it. */
const EXAMPLES = [
  'an-admin-key-to-play-with',
  'AN-ADMIN-KEY-TO-PLAY-WITH',
  'an-admin-key-to-play-with-in-production',
].map(example => example.padEnd(32, '-x7Q'))

t.test('a weak secret is an error in production and a warning elsewhere, and is not quoted', async t => {
  for (const secret of [...GUESSABLE, ...EXAMPLES]) {
    const reason = GUESSABLE.includes(secret) ? 'is too easy to guess' : 'is the example of the documents'
    for (const name of NAMES) {
      const sentence = `${name} ${reason}: make a key with npm run cli -- keys new`
      t.same(inProduction({ [name]: secret }), [`  ${sentence}`], secret)
      for (const NODE_ENV of ['development', 'test', ''])
        t.same(attempt({ [name]: secret, NODE_ENV, MAIL_URL: '' }), { errors: [], warnings: [sentence] })
    }
  }
  t.equal(inProduction({ ADMIN_KEY: 'password12345678' }).length, 1)
  const all = inProduction({ PORT: 'x', ADMIN_KEY: 'a'.repeat(16), JWT_SECRET: 'b'.repeat(32) })
  t.same(
    all.map(line => line.trim().split(' ')[0]),
    ['PORT', 'ADMIN_KEY', 'JWT_SECRET'],
  )
})

t.test('a secret from a file is named by the variable of the file', async t => {
  const file = join(temporaryFolder(t), 'key')
  writeFileSync(file, `${'a'.repeat(40)}\n`)
  for (const name of NAMES)
    t.same(inProduction({ [name]: '', [`${name}_FILE`]: file }), [
      `  ${name}_FILE is too easy to guess: make a key with npm run cli -- keys new`,
    ])
})

t.test('random keys of 128 bits in any notation, and careful passphrases, are accepted', async t => {
  for (const key of [
    ADMIN_KEY,
    JWT_SECRET,
    'newcomer-admin-key-0123456789abcdef',
    'a-secret-of-enough-characters-0123456789',
    'correct-horse-battery-staple-and-a-moat',
  ])
    for (const name of NAMES) t.same(inProduction({ [name]: key.padEnd(32, 'x7Q') }), [], key)
  const notations = [
    (bytes: Buffer) => bytes.toString('hex'),
    (bytes: Buffer) => bytes.toString('hex').toUpperCase(),
    (bytes: Buffer) => bytes.toString('base64'),
    (bytes: Buffer) => bytes.toString('base64url'),
    () => randomUUID(),
  ]
  for (const notation of notations) {
    const rejected = Array.from({ length: inShortRun(100, 500) }, () => notation(randomBytes(16))).filter(
      key => inProduction({ ADMIN_KEY: key }).length > 0,
    )
    t.same(rejected, [])
  }
})

t.test('checking a secret is fast, and secrets of few distinct characters are rejected', async () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...'aZ5-'),
      fc.constantFrom(...'bY6_'),
      fc.integer({ min: 32, max: 5_000 }),
      (a, b, n) =>
        inProduction({
          JWT_SECRET: Array.from({ length: n }, (_, index) => (index % 7 < 3 ? a : b)).join(''),
        }).length === 1,
    ),
    { numRuns: inShortRun(10, 50) },
  )
})

t.test('every key in the documents of this repository is refused in production', async t => {
  const project = join(import.meta.dirname, '..', '..')
  const files = [
    'README.md',
    ...globSync('docs/*.md', { cwd: project }),
    '.env.example',
    'compose.yaml',
    'requests.http',
    'deploy/kubernetes.yaml',
  ]
  const shown = files.flatMap(file =>
    [
      ...readFileSync(join(project, file), 'utf8').matchAll(
        /(?:(?:ADMIN_KEY|JWT_SECRET)(?:_PREVIOUS)?[=:] ?|x-admin-key: |@key = )([\w-]{12,})/gi,
      ),
    ].map(([, key = '']) => key),
  )
  t.ok(shown.length > 3)
  for (const key of new Set(shown))
    t.match(inProduction({ ADMIN_KEY: key })[0], 'is the example of the documents', key)
})

t.test('an unset PUBLIC_URL in production causes a warning', async t => {
  const { warnings } = attempt({ NODE_ENV: 'production', PUBLIC_URL: '', HOST: '0.0.0.0' })
  t.same(warnings, ['PUBLIC_URL is not set: links in mails lead to http://localhost:3000'])
  t.same(attempt({ NODE_ENV: 'production' }).warnings, [])
  t.same(attempt({ PUBLIC_URL: '' }).warnings, [])
})
