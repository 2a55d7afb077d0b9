import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ConfigError } from '#base/settings/readers'
import { defaultCacheSize, defaultWorkers } from '#process/config/defaults'
import { loadEnvironment } from '#process/config/read-settings'
import { namesWith, SETTINGS } from '#process/config/settings'
import { temporaryFolder } from '../support/build.ts'
import { loadConfig } from '../support/config.ts'

const SECRET = 'a-secret-of-enough-characters-0123456789'

const configErrors = (environment: Record<string, string>): string => {
  try {
    loadConfig(environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return ''
}

const ANDROID_APP = `android:apk-key-hash:${'A1-_'.repeat(10)}aaA`

const WRONG: [name: string, values: string[]][] = [
  ['PORT', ['70000', '80.5', '-1', '0x50', 'http']],
  ['TRUST_PROXY', ['1', 'true', '*', '10.0.0.0/33', '10.0.0.0/8/8', 'proxy.example', '::1/129']],
  ['ALLOWED_ORIGINS', ['app.example.com', 'https://app.example.com/', 'https://app.example.com/path', '*']],
  [
    'ALLOWED_ORIGINS',
    ['android:apk-key-hash:', `${ANDROID_APP}=`, `${ANDROID_APP.slice(0, -1)}B`, 'ios:bundle-id:a b'],
  ],
  [
    'ALLOWED_ORIGINS',
    [ANDROID_APP.slice(0, -1), 'Android:apk-key-hash:x', 'ios:app-id:x', 'ios:bundle-id:.x'],
  ],
  [
    'CORS_ORIGINS',
    ['*', 'null', 'true', ANDROID_APP, 'https://*.example.com', 'https://app.example.com/', 'file:///x'],
  ],
  ['JWT_SECRET', ['canary'.padEnd(31, 'x'), `${SECRET} canary`, `${SECRET}é`]],
  ['JWT_ALGORITHM', ['hs256', 'RS256', 'none']],
  ['JWT_PRIVATE_KEY', ['canary']],
  ['JWT_PRIVATE_KEY_PREVIOUS', ['canary']],
  ['JWT_AUDIENCE', ['two words', 'a"b', 'a\\b', 'é']],
  ['JWT_AUDIENCE_PREVIOUS', ['two words']],
  ['ENCRYPTION_KEY', ['canary'.padEnd(31, 'x'), `${SECRET}é`]],
  ['ENCRYPTION_KEY_PREVIOUS', ['canary'.padEnd(31, 'x')]],
  ['ADMIN_KEY', ['canary'.padEnd(15, 'x')]],
  ['JWT_SECRET_FILE', ['/nowhere/secret']],
  ['DATABASE_URL', ['mysql://canary@127.0.0.1:1/x', 'sqlite:', 'sqlite::memory:', 'data/x.db']],
  ['DATABASE_CONNECTIONS', ['0', '1001', 'many']],
  ['WORKERS', ['0', '257', 'all']],
  ['NODE_ENV', ['prod', 'Production']],
  ['LOG_LEVEL', ['loud']],
  ['LOG_REQUESTS', ['yes']],
  ['RATE_LIMIT', ['yes', '0', '100']],
  ['DOCS', ['no', 'false']],
  ['SESSION_LIFETIME', ['0', 'forever', '1w', '-1d', '99999d', '1.5h']],
  ['SESSION_IDLE', ['0s']],
  ['LAST_REQUEST_INTERVAL', ['0', '999ms', '11m']],
  ['EVENTS_KEPT', ['23h', '0', 'always']],
  ['PASSWORD_MIN_LENGTH', ['7', '129']],
  [
    'BREACHED_PASSWORDS_URL',
    [
      'on',
      'http://breaches.example',
      'http://localhost.example',
      'http://127.0.0.1.example',
      'https://h/?a=b',
      'https://h/canary?a=canary',
      'http://breaches.example/canary',
      'https://u:canary@h',
    ],
  ],
  [
    'HSTS',
    [
      'on',
      'includeSubDomains',
      'max-age',
      'max-age=-1',
      'max-age=1y',
      'max-age=1, max-age=2',
      'max-age=1; max-age=2',
      'max-age=1; other',
      'max-age=1\r\nset-cookie: a=b',
    ],
  ],
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
      'somebody',
      'Gatehouse <somebody>',
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
  [
    'TERMS_URL',
    [
      '/terms',
      '//e',
      'JaVaScRiPt:alert(1)',
      'data:text/html,x',
      'https:e',
      'https://good@e',
      'ftp://h/terms',
    ],
  ],
  ['SIGN_UP_PAGE', ['true', 'ON']],
  ['EMAIL_CODES', ['true', 'ON', '1']],
  ['MAGIC_LINKS', ['true', 'ON', '1']],
  ['DRAIN_DELAY', ['soon']],
]

/** Settings that are secrets or may contain one. */
const UNQUOTED = /SECRET|KEY|_URL$/

t.test('an invalid setting is named, and quoted unless it may contain a secret', async t => {
  for (const [name, values] of WRONG) {
    for (const value of values) {
      const message = configErrors({ [name]: value })
      t.match(
        message,
        new RegExp(`^The configuration is not valid:\\n {2}${name} [^\\n]+$`),
        `${name}=${value}`,
      )
      t.notMatch(message, /canary/)
      if (name !== 'WORKERS' && !UNQUOTED.test(name)) {
        const [, quoted = '""'] = /, not ("[^\n]*")$/.exec(message) ?? []
        t.ok(value.includes(JSON.parse(quoted)) && quoted !== '""', message)
      }
    }
  }
  t.match(configErrors({ PORT: '80x' }), /^ {2}PORT must be an integer from 0 to 65535, not "80x"$/m)
  t.match(configErrors({ PUBLIC_URL: 'https://h/?a=b' }), /not "https:\/\/h\/\?a=b"$/)
  t.notMatch(configErrors({ ALLOWED_ORIGINS: 'https://u:canary@h' }), /canary/)
  for (const [origin, rule] of [
    [
      'android:apk-key-hash:AB:CD',
      "must have the SHA-256 of the app's certificate in base64url, which has 43 characters and no =, behind android:apk-key-hash:",
    ],
    [
      'ios:bundle-id:a_b',
      'must have the bundle id of the app, such as com.example.app, behind ios:bundle-id:',
    ],
    ['android:package:x', 'must have apps as android:apk-key-hash:… or ios:bundle-id:…'],
  ] as const)
    t.match(
      configErrors({ ALLOWED_ORIGINS: `https://a.example,${origin}` }),
      `ALLOWED_ORIGINS ${rule}, not "${origin}"`,
    )
  t.match(configErrors({ LOG_LEVEL: 'x'.repeat(5_000) }), /not "x{80}…"$/)
})

t.test('an unreadable file is named, unless the path may be the secret itself', async t => {
  for (const file of ['/nowhere/secret', './secret', 'C:\\secrets\\key', 'nowhere/jwt-secret', 'secret.txt'])
    for (const name of namesWith('canBeFile'))
      t.match(
        configErrors({ [`${name}_FILE`]: file }),
        `${name}_FILE names a file that cannot be read: ${file} (ENOENT)`,
      )
  t.match(configErrors({ JWT_SECRET_FILE: '/' }), 'cannot be read: / (EISDIR)')
  for (const secret of [
    'canary-5d2e8b71c09f4a36b1e7d2f8',
    'Canary/5d2e8b71c09f4a36b1e7d2f8',
    'smtp://u:canary@h',
  ])
    t.notMatch(configErrors({ MAIL_URL_FILE: secret }), /canary/i)
})

t.test('D12: a byte order mark before a file is dropped, and that of UTF-16 is named', t => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'text')
  writeFileSync(file, `\ufeff${SECRET}\r\n`)
  t.same(loadConfig({ ADMIN_KEY_FILE: file }).adminKeys, [SECRET])
  const inUtf16 = Buffer.from(`\ufeff${SECRET}\r\n`, 'utf16le')
  for (const [bytes, problem] of [
    [inUtf16, 'is in UTF-16: save it as UTF-8'],
    [Buffer.from(inUtf16).swap16(), 'is in UTF-16: save it as UTF-8'],
    [Buffer.from([0xff]), 'is not valid UTF-8'],
  ] as const) {
    writeFileSync(file, bytes)
    for (const name of [...namesWith('canBeFile').map(name => `${name}_FILE`), 'USER_METADATA_SCHEMA'])
      t.match(configErrors({ [name]: file }), `${name} names a file that ${problem}: ${file}`)
    t.match(configErrors({ OIDC_PROVIDERS: file }), `OIDC_PROVIDERS names a file that ${problem}: ${file}`)
  }

  const working = process.cwd()
  const loaded = (bytes: string | Buffer) => {
    writeFileSync(join(folder, '.env'), bytes)
    process.chdir(folder)
    try {
      return { ...loadEnvironment() }
    } finally {
      process.chdir(working)
    }
  }
  const names = ['D12_FIRST', 'D12_SECOND', 'D12_GIVEN']
  t.teardown(() => {
    for (const name of names) delete process.env[name]
  })
  process.env.D12_GIVEN = ''
  t.match(loaded('\ufeffD12_FIRST=1\nD12_SECOND=2\nD12_GIVEN=3'), {
    D12_FIRST: '1',
    D12_SECOND: '2',
    D12_GIVEN: '',
  })
  t.throws(() => loaded(inUtf16), new ConfigError(['The file .env is in UTF-16: save it as UTF-8']))
  t.end()
})

t.test('a PostgreSQL password that needs percent-encoding is reported, not shown', async t => {
  for (const password of [
    'can#ary',
    '12#34',
    'can/ary',
    '12/34',
    'can?ary',
    '12?34',
    'can%ary',
    'c@n/ary',
    'can%zzary',
  ])
    for (const rest of ['@db.example/gatehouse', '@db.example:5432/gatehouse?sslmode=verify-full']) {
      const DATABASE_URL = `postgres://gatehouse:${password}${rest}`
      const message = configErrors({ DATABASE_URL, JWT_SECRET: SECRET })
      t.match(
        message,
        /DATABASE_URL must be sqlite:.* or postgres:.* # as %23, \/ as %2F, \? as %3F, @ as %40 and % as %25$/m,
      )
      t.notMatch(message, password)
      const encoded = `postgres://gatehouse:${encodeURIComponent(password)}${rest}`
      t.equal(configErrors({ DATABASE_URL: encoded, JWT_SECRET: SECRET }), '')
    }
  for (const DATABASE_URL of [
    'postgres://db/gatehouse?user=a@b',
    'postgres://u:p@[::1]/d?options=-c%20a%3Db',
  ])
    t.equal(configErrors({ DATABASE_URL, JWT_SECRET: SECRET }), '')
})

t.test('SESSION_IDLE is at most SESSION_LIFETIME; its default adapts', async t => {
  const sentence = '  SESSION_IDLE must not be longer than SESSION_LIFETIME, at which every session ends'
  for (const env of [{ SESSION_IDLE: '31d' }, { SESSION_IDLE: '2h', SESSION_LIFETIME: '1h' }])
    t.equal(configErrors(env), `The configuration is not valid:\n${sentence}`)
  t.match(loadConfig({ SESSION_LIFETIME: '12h' }), { sessionIdle: 43_200_000, sessionLifetime: 43_200_000 })
  t.equal(configErrors({ SESSION_IDLE: '30d' }), '')
})

/** Variables that containers, shells, desktops, CI systems and npm set. */
const USUAL =
  `HOME PATH PWD OLDPWD SHELL SHLVL USER LOGNAME HOSTNAME HOSTTYPE OSTYPE TERM TERM_PROGRAM COLORTERM LANG
LC_ALL LC_CTYPE LANGUAGE TZ TMPDIR EDITOR VISUAL PAGER LESS LS_COLORS MAIL MAILCHECK DISPLAY WAYLAND_DISPLAY
XDG_SESSION_ID XDG_SESSION_TYPE XDG_RUNTIME_DIR DESKTOP_SESSION SESSION_MANAGER SESSION_ID SESSIONNAME SSH_CLIENT
SSH_CONNECTION SSH_AUTH_SOCK SUDO_USER INVOCATION_ID JOURNAL_STREAM NOTIFY_SOCKET LISTEN_FDS MAINPID CI DEBUG
NODE_OPTIONS NODE_PATH NODE_VERSION NODE_EXTRA_CA_CERTS NODE_COMPILE_CACHE NO_COLOR FORCE_COLOR YARN_VERSION INIT_CWD
npm_config_cache npm_lifecycle_event npm_package_json npm_execpath PORTS POST POSTS HOSTS PORT_3000_TCP
KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_PORT KUBERNETES_PORT_443_TCP GATEHOUSE_PORT
GATEHOUSE_SERVICE_HOST GATEHOUSE_PORT_3000_TCP_ADDR DATABASE_PORT DATABASE_SERVICE_HOST MAIL_PORT MAIL_HOST WEB_PORT
WEB_HOST PUBLIC_PORT HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSSLMODE
POSTGRES_PASSWORD POSTGRES_USER AWS_REGION AWS_SECRET_ACCESS_KEY SECRET_KEY API_KEY JWT_KEY SITE LOG_FORMAT UV_THREADPOOL_SIZE
WEB_CONCURRENCY RATE HOST_IP HOSTPORT USERDOMAIN SYSTEMROOT WINDIR COMSPEC APPDATA PATHEXT PROCESSOR_LEVEL`.split(
    /\s+/,
  )

t.test('an unknown variable that resembles a setting causes a warning', async t => {
  const warningsOf = (names: readonly string[], value = 'x'): readonly string[] =>
    loadConfig({ ADMIN_KEY: SECRET, ...Object.fromEntries(names.map(name => [name, value])) }).warnings
  for (const [written, meant] of [
    ['ADMINKEY', 'ADMIN_KEY'],
    ['admin_key', 'ADMIN_KEY'],
    ['DATABASE_ULR', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['JWT_SECERT', 'JWT_SECRET'],
    ['JWT_SECRETS', 'JWT_SECRET'],
    ['RATELIMIT', 'RATE_LIMIT'],
    ['SESSION_LIFE_TIME', 'SESSION_LIFETIME'],
    ['PASSWORD_MIN_LENGHT', 'PASSWORD_MIN_LENGTH'],
    ['JWT_SECERT_FILE', 'JWT_SECRET_FILE'],
    ['HOST_FILE', undefined],
    ['TRUST_PROXI', 'TRUST_PROXY'],
    ['MAIL_ULR', 'MAIL_URL'],
  ] as const)
    t.same(
      warningsOf([written], 'canary'),
      meant === undefined ? [] : [`${written} is not a setting; did you mean ${meant}?`],
    )
  t.same(warningsOf(['ADMINKEY'], ''), [], 'an empty one is absent')
  t.same(warningsOf(USUAL), [])
  t.same(warningsOf(Object.keys(process.env).filter(name => !(name in SETTINGS))), [])
})

t.test('every error is in one message', async t => {
  const message = configErrors(Object.fromEntries(WRONG.map(([name, [value = '']]) => [name, value])))
  for (const [name] of WRONG) t.match(message, new RegExp(`^ {2}${name} `, 'm'))
})

t.test('previous secrets require current ones, and a secret is given once', async t => {
  t.match(configErrors({ ADMIN_KEY_PREVIOUS: SECRET }), /ADMIN_KEY_PREVIOUS has no effect without ADMIN_KEY/)
  t.match(
    configErrors({ JWT_SECRET_PREVIOUS: SECRET }),
    /JWT_SECRET_PREVIOUS has no effect without JWT_SECRET/,
  )
  t.match(
    configErrors({
      DATABASE_URL: 'postgres://db/gatehouse',
      JWT_SECRET: SECRET,
      ENCRYPTION_KEY_PREVIOUS: SECRET,
    }),
    /ENCRYPTION_KEY_PREVIOUS has no effect without ENCRYPTION_KEY/,
  )
  const file = join(temporaryFolder(t), 'secret')
  writeFileSync(file, `${SECRET}\n`)
  t.match(
    configErrors({ ADMIN_KEY: SECRET, ADMIN_KEY_FILE: file }),
    /ADMIN_KEY is given twice, also as ADMIN_KEY_FILE/,
  )
  t.same(loadConfig({ ADMIN_KEY_FILE: file }).adminKeys, [SECRET])
})

t.test('PostgreSQL requires a shared secret', async t => {
  const DATABASE_URL = 'postgres://gatehouse:canary@db.example/gatehouse'
  const message = configErrors({ DATABASE_URL })
  t.match(message, /JWT_SECRET is needed with PostgreSQL/)
  t.notMatch(message, /canary/)
  const config = loadConfig({ DATABASE_URL, JWT_SECRET: SECRET, DATABASE_CONNECTIONS: '25', WORKERS: '4' })
  t.match(config, {
    storage: { engine: 'postgres', url: DATABASE_URL },
    databaseConnections: 25,
    signingKeys: { signer: { algorithm: 'HS256', secret: { value: SECRET } }, privateKey: null },
    encryptionKey: null,
    workers: 4,
  })
  t.ok(loadConfig({ DATABASE_URL, JWT_SECRET: SECRET, WORKERS: 'auto' }).workers >= 1)
})

t.test('mailed codes require mails, and with PostgreSQL a shared encryption key', async t => {
  t.equal(loadConfig({}).featureSettings.EMAIL_CODES, 'off')
  t.equal(loadConfig({ EMAIL_CODES: 'on' }).featureSettings.EMAIL_CODES, 'on')
  t.match(
    configErrors({ EMAIL_CODES: 'on', MAIL_URL: 'off' }),
    /^ {2}MAIL_URL cannot be off with EMAIL_CODES: no code would be sent$/m,
  )
  const postgres = { DATABASE_URL: 'postgres://db.example/gatehouse', JWT_SECRET: SECRET, EMAIL_CODES: 'on' }
  t.match(configErrors(postgres), /^ {2}ENCRYPTION_KEY is needed with PostgreSQL and EMAIL_CODES: /m)
  t.equal(loadConfig({ ...postgres, ENCRYPTION_KEY: SECRET }).featureSettings.EMAIL_CODES, 'on')
})

t.test('several workers are the default of SQLite in production only', async t => {
  t.equal(loadConfig({}).workers, 1)
  const production = { NODE_ENV: 'production', ADMIN_KEY: SECRET, JWT_SECRET: SECRET }
  t.equal(loadConfig(production).workers, defaultWorkers())
  t.equal(loadConfig({ ...production, WORKERS: '1' }).workers, 1)
  t.equal(loadConfig(production, '/auth').workers, 1, 'a host starts none')
  t.equal(loadConfig({ ...production, DATABASE_URL: 'postgres://db.example/gatehouse' }).workers, 1)
})

t.test('the default number of workers follows from cores and memory', async t => {
  const GIB = 2 ** 30
  t.equal(defaultWorkers(1, 16 * GIB, true), 1)
  t.equal(defaultWorkers(2, 16 * GIB, true), 2)
  t.equal(defaultWorkers(64, 64 * GIB, true), 4)
  t.equal(defaultWorkers(8, 1.9 * GIB, true), 2)
  t.equal(defaultWorkers(8, GIB, true), 1)
  t.equal(defaultWorkers(8, GIB / 4, true), 1)
  t.equal(defaultWorkers(8, 64 * GIB, false), 1, 'threads cannot share a port')
})

t.test('the default size of the token cache follows from the memory and the heap limit', async t => {
  const [MIB, GIB] = [2 ** 20, 2 ** 30]
  // Node's heap limit on a machine with much memory.
  const heapLimit = 4_288 * MIB
  t.equal(defaultCacheSize(1, 16 * GIB, heapLimit), 1_000_000)
  t.equal(defaultCacheSize(4, 16 * GIB, heapLimit), 1_000_000)
  t.equal(defaultCacheSize(4, 8 * GIB, heapLimit), 559_240)
  t.equal(defaultCacheSize(1, GIB / 2, heapLimit), 139_810, 'a small container')
  t.equal(defaultCacheSize(1, 16 * GIB, 256 * MIB), 34_952, '--max-old-space-size=64')
  t.equal(defaultCacheSize(1, 16 * GIB, 128 * MIB), 1_000, 'a minimum is always cached')
  t.equal(loadConfig({ CACHE_SIZE: '250000' }).cacheSize, 250_000)
  t.equal(loadConfig({ WORKERS: '2' }).cacheSize, defaultCacheSize(2))
  for (const CACHE_SIZE of ['999', '10000001', 'many'])
    t.throws(() => loadConfig({ CACHE_SIZE }), /CACHE_SIZE must be an integer from 1000 to 10000000/)
})

t.test('values are parsed in their units, and empty ones are absent', async t => {
  const config = loadConfig({
    PORT: '0',
    ADMIN_KEY: '',
    DATABASE_URL: 'sqlite:///var/lib/gatehouse.db',
    SESSION_LIFETIME: '12h',
    SESSION_IDLE: '90',
    LAST_REQUEST_INTERVAL: '5m',
    EVENTS_KEPT: '2d',
    DRAIN_DELAY: '500ms',
    TRUST_PROXY: '10.0.0.0/8, ::1, loopback',
    ALLOWED_ORIGINS: `https://app.example.com, ${ANDROID_APP}, http://localhost:5173,ios:bundle-id:com.example.app`,
    CORS_ORIGINS: 'https://app.example.com:8443',
  })
  t.match(config, {
    port: 0,
    adminKeys: [],
    storage: { engine: 'sqlite', file: '/var/lib/gatehouse.db' },
    signingKeys: { signer: { secret: { file: '/var/lib/gatehouse.db.jwt-secret' } } },
    encryptionKey: { file: '/var/lib/gatehouse.db.encryption-key' },
    encryptionKeyPrevious: null,
    sessionLifetime: 43_200_000,
    sessionIdle: 90_000,
    lastRequestInterval: 300_000,
    eventsKept: 172_800_000,
    drainDelay: 500,
    trustedProxies: ['10.0.0.0/8', '::1', 'loopback'],
    allowedOrigins: ['https://app.example.com', 'http://localhost:5173'],
    nativeOrigins: [ANDROID_APP, 'ios:bundle-id:com.example.app'],
    corsOrigins: ['https://app.example.com:8443'],
  })
  t.ok(Object.isFrozen(config))
})

t.test('mail settings: sender, server and the base of links', async t => {
  const { mail, publicUrl, webUrl, accountUrl } = loadConfig({})
  t.same(mail, {
    url: null,
    from: 'Gatehouse <no-reply@localhost>',
    folder: join('data', 'outbox'),
    templates: null,
  })
  t.equal(publicUrl, 'http://127.0.0.1:3000')
  t.equal(webUrl, 'http://127.0.0.1:3000')
  t.equal(accountUrl, 'http://127.0.0.1:3000/security')
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
    PAGES: 'off',
  })
  t.same(given.mail, {
    url: MAIL_URL,
    from: '"Gatehouse, Inc." <no-reply@example.com>',
    folder: join('/var/lib/gatehouse', 'outbox'),
    templates: null,
  })
  t.equal(given.publicUrl, 'https://example.com/accounts')
  t.equal(given.webUrl, 'https://app.example.com/start?lang=en')
  t.equal(given.accountUrl, given.webUrl)
  t.equal(loadConfig({ PUBLIC_URL: 'https://example.com' }).webUrl, 'https://example.com')
  t.equal(
    loadConfig({ DATABASE_URL: 'postgres://u:p@db/gatehouse', JWT_SECRET: SECRET }).mail.folder,
    join('data', 'outbox'),
  )
})
