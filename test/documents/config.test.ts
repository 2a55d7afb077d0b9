import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ConfigError, loadConfig } from '../../src/config.ts'
import { temporaryFolder } from '../support/build.ts'

const SECRET = 'a-secret-of-enough-characters-0123456789'

const faultsOf = (environment: Record<string, string>): string => {
  try {
    loadConfig(environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return ''
}

const WRONG: [name: string, values: string[]][] = [
  ['PORT', ['70000', '80.5', '-1', '0x50', 'http']],
  ['TRUST_PROXY', ['1', 'true', '*', '10.0.0.0/33', '10.0.0.0/8/8', 'proxy.example', '::1/129']],
  ['ALLOWED_ORIGINS', ['app.example.com', 'https://app.example.com/', 'https://app.example.com/path', '*']],
  ['JWT_SECRET', ['canary'.padEnd(31, 'x'), `${SECRET} canary`, `${SECRET}é`]],
  ['ADMIN_KEY', ['canary'.padEnd(15, 'x')]],
  ['JWT_SECRET_FILE', ['/nowhere/secret']],
  ['DATABASE_URL', ['mysql://canary@127.0.0.1:1/x', 'sqlite:', 'sqlite::memory:', 'data/x.db']],
  ['DATABASE_CONNECTIONS', ['0', '1001', 'many']],
  ['WORKERS', ['0', '257', 'all', '2']],
  ['NODE_ENV', ['prod', 'Production']],
  ['LOG_LEVEL', ['loud']],
  ['LOG_REQUESTS', ['yes']],
  ['RATE_LIMIT', ['yes', '0', '100']],
  ['SESSION_LIFETIME', ['0', 'forever', '1w', '-1d', '99999d', '1.5h']],
  ['SESSION_IDLE', ['0s']],
  ['EVENTS_KEPT', ['23h', '0', 'always']],
  ['PASSWORD_MIN_LENGTH', ['7', '129']],
  [
    'MAIL_URL',
    [
      'http://canary@mail.example',
      'smtp:canary',
      'smtp://',
      'smtps://u:canary@h/?logger=true',
      'smtp://h?pool=no',
      'smtp://h?connectionTimeout=canary',
      'smtp://h?requireTLS=canary',
      'smtp://u:canary%zz@h',
    ],
  ],
  [
    'MAIL_FROM',
    [
      'canary',
      'Gatehouse <canary>',
      'a@b.example, c@d.example',
      'Ann\nBcc: <a@b.example>',
      'A, B <a@b.example>',
    ],
  ],
  [
    'PUBLIC_URL',
    ['accounts.example.com', 'ftp://h', 'https://u:canary@h', 'https://h/?a=b', 'https://h/#a', 'https://'],
  ],
  ['WEB_URL', ['/welcome', 'javascript:alert(1)', 'https://u:canary@h', 'https://h/#/app']],
  ['DRAIN_DELAY', ['soon']],
]

t.test('a setting that is not valid is named, its value is not (DESIGN §8)', async t => {
  for (const [name, values] of WRONG) {
    for (const value of values) {
      const message = faultsOf({ [name]: value })
      t.match(
        message,
        new RegExp(`^The configuration is not valid:\\n {2}${name} [^\\n]+$`),
        `${name}=${value}`,
      )
      t.notMatch(message, /canary/)
    }
  }
})

t.test('every fault is named in one message (DESIGN §8)', async t => {
  const message = faultsOf(Object.fromEntries(WRONG.map(([name, [value = '']]) => [name, value])))
  for (const [name] of WRONG) t.match(message, new RegExp(`^ {2}${name} `, 'm'))
})

t.test('previous secrets need current ones, and a secret is given once (DESIGN §8)', async t => {
  t.match(faultsOf({ ADMIN_KEY_PREVIOUS: SECRET }), /ADMIN_KEY_PREVIOUS is of no use without ADMIN_KEY/)
  t.match(faultsOf({ JWT_SECRET_PREVIOUS: SECRET }), /JWT_SECRET_PREVIOUS is of no use without JWT_SECRET/)
  const file = join(temporaryFolder(t), 'secret')
  writeFileSync(file, `${SECRET}\n`)
  t.match(
    faultsOf({ ADMIN_KEY: SECRET, ADMIN_KEY_FILE: file }),
    /ADMIN_KEY is given twice, also as ADMIN_KEY_FILE/,
  )
  t.same(loadConfig({ ADMIN_KEY_FILE: file }).adminKeys, [SECRET])
})

t.test('PostgreSQL needs a secret that all instances share (DESIGN §5)', async t => {
  const DATABASE_URL = 'postgres://gatehouse:canary@db.example/gatehouse'
  const message = faultsOf({ DATABASE_URL })
  t.match(message, /JWT_SECRET is needed with PostgreSQL/)
  t.notMatch(message, /canary/)
  const config = loadConfig({ DATABASE_URL, JWT_SECRET: SECRET, DATABASE_CONNECTIONS: '25', WORKERS: '4' })
  t.match(config, {
    storage: { engine: 'postgres', url: DATABASE_URL },
    databaseConnections: 25,
    jwtSecret: { value: SECRET },
    workers: 4,
  })
  t.ok(loadConfig({ DATABASE_URL, JWT_SECRET: SECRET, WORKERS: 'auto' }).workers >= 1)
})

t.test('values are read in their units, empty ones are absent (DESIGN §8)', async t => {
  const config = loadConfig({
    PORT: '0',
    ADMIN_KEY: '',
    DATABASE_URL: 'sqlite:///var/lib/gatehouse.db',
    SESSION_LIFETIME: '12h',
    SESSION_IDLE: '90',
    EVENTS_KEPT: '2d',
    DRAIN_DELAY: '500ms',
    TRUST_PROXY: '10.0.0.0/8, ::1, loopback',
    ALLOWED_ORIGINS: 'https://app.example.com, http://localhost:5173',
  })
  t.match(config, {
    port: 0,
    adminKeys: [],
    storage: { engine: 'sqlite', file: '/var/lib/gatehouse.db' },
    jwtSecret: { keptIn: '/var/lib/gatehouse.db.jwt-secret' },
    sessionLifetime: 43_200_000,
    sessionIdle: 90_000,
    eventsKept: 172_800_000,
    drainDelay: 500,
    trustedProxies: ['10.0.0.0/8', '::1', 'loopback'],
    allowedOrigins: ['https://app.example.com', 'http://localhost:5173'],
  })
  t.ok(Object.isFrozen(config))
})

t.test('mails: whom they are from, where they go and where their links lead (DESIGN §8)', async t => {
  const { mail, publicUrl, webUrl } = loadConfig({})
  t.same(mail, { url: null, from: 'Gatehouse <no-reply@localhost>', outbox: join('data', 'outbox') })
  t.equal(publicUrl, 'http://127.0.0.1:3000')
  t.equal(webUrl, 'http://127.0.0.1:3000/docs')
  for (const [HOST, host] of [
    ['0.0.0.0', 'localhost'],
    ['::', 'localhost'],
    ['::1', '[::1]'],
    ['accounts.internal', 'accounts.internal'],
  ] as const)
    t.equal(loadConfig({ HOST, PORT: '80' }).publicUrl, `http://${host}:80`)

  const MAIL_URL = 'smtps://user%40example.com:p%2Fw@mail.example:465/?tls.rejectUnauthorized=false&name=here'
  const given = loadConfig({
    DATABASE_URL: 'sqlite:/var/lib/gatehouse/users.db',
    MAIL_URL,
    MAIL_FROM: '"Gatehouse, Inc." <no-reply@example.com>',
    PUBLIC_URL: 'https://example.com/accounts/',
    WEB_URL: 'https://app.example.com/start?lang=en',
  })
  t.same(given.mail, {
    url: MAIL_URL,
    from: '"Gatehouse, Inc." <no-reply@example.com>',
    outbox: join('/var/lib/gatehouse', 'outbox'),
  })
  t.equal(given.publicUrl, 'https://example.com/accounts')
  t.equal(given.webUrl, 'https://app.example.com/start?lang=en')
  t.equal(loadConfig({ PUBLIC_URL: 'https://example.com' }).webUrl, 'https://example.com/docs')
  t.equal(
    loadConfig({ DATABASE_URL: 'postgres://u:p@db/gatehouse', JWT_SECRET: SECRET }).mail.outbox,
    join('data', 'outbox'),
  )
})
