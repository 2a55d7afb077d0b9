/**
 * POST /admin/users/import (docs/design.md, "Account life cycle"): results per line, and repeated imports. Streams: import-streams.test.ts.
 */
import { scryptSync } from 'node:crypto'
import { hashSync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import t from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { asAdmin, freshEmail, PASSWORD, signIn, signUp } from '../support/build.ts'
import { IMPORT, importAll, NDJSON, post } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'

const scryptOf = (password: string): string => {
  const salt = Buffer.alloc(16, 5)
  const digest = scryptSync(password, salt, 32, { cost: 1_024, blockSize: 8, parallelization: 1 })
  return `$scrypt$ln=10,r=8,p=1$${salt.toString('base64')}$${digest.toString('base64')}`
}

const WEAK = { memoryCost: 1_024, timeCost: 1, parallelism: 1 }

const HASHES: Record<string, string> = {
  argon2id: hashSync(PASSWORD, WEAK),
  argon2i: hashSync(PASSWORD, { ...WEAK, algorithm: 1 as never }),
  argon2d: hashSync(PASSWORD, { ...WEAK, algorithm: 0 as never }),
  $2a$: bcrypt.hashSync(PASSWORD, 4).replace('$2b$', '$2a$'),
  $2b$: bcrypt.hashSync(PASSWORD, 4),
  $2y$: bcrypt.hashSync(PASSWORD, 4).replace('$2b$', '$2y$'),
  scrypt: scryptOf(PASSWORD),
}

/** Invalid lines with their errors. */
const HOSTILE: readonly (readonly [string | Buffer, Record<string, string[]>])[] = [
  ['nonsense', { global: ['The body is not valid JSON'] }],
  ['{"email":"a@example.com"', { global: ['The body is not valid JSON'] }],
  ['{"email":"a@example.com"}{"email":"b@example.com"}', { global: ['The body is not valid JSON'] }],
  ['[]', { global: ['The body must be a JSON object'] }],
  ['null', { global: ['The body must be a JSON object'] }],
  ['5', { global: ['The body must be a JSON object'] }],
  ['{"email":"a@example.com","email":"b@example.com"}', { global: ['The body names a property twice'] }],
  ['{"email":"a@example.com","__proto__":{}}', { global: ['The body has a property with a forbidden name'] }],
  [Buffer.from([0x7b, 0xff, 0x7d]), { global: ['The body is not valid UTF-8'] }],
  [`{"email":"a@example.com","firstName":"${'x'.repeat(98_304)}"}`, { global: ['The body is too large'] }],
  ['x'.repeat(200_000), { global: ['The body is too large'] }],
  ['{}', { email: ['is required'] }],
  [
    '{"email":"nobody","admin":true}',
    { email: ['must be a valid e-mail address'], admin: ['is not allowed'] },
  ],
  [
    '{"email":5,"disabled":"true","firstName":""}',
    {
      email: ['must be string'],
      disabled: ['must be boolean'],
      firstName: ['must have at least 1 character'],
    },
  ],
  ['{"email":"a@example.com","firstName":"\\u0000"}', { firstName: ['must not contain NUL'] }],
  ['{"email":"a@example.com","lastName":"\\ud800"}', { lastName: ['must be valid Unicode'] }],
  ['{"email":"a@example.com","id":"7"}', { id: ['must be a valid id'] }],
  [
    '{"email":"a@example.com","createdAt":"yesterday"}',
    { createdAt: ['must be a timestamp with a time zone, such as 2026-01-31T09:30:00Z'] },
  ],
  [
    '{"email":"a@example.com","createdAt":"2016-12-31T23:59:60Z"}',
    { createdAt: ['must be a timestamp with a time zone, such as 2026-01-31T09:30:00Z'] },
  ],
  [
    '{"email":"a@example.com","createdAt":"0000-01-01T00:00:00+23:00"}',
    { createdAt: ['must be a timestamp with a time zone, such as 2026-01-31T09:30:00Z'] },
  ],
  ['{"email":"a@example.com","updatedAt":1}', { updatedAt: ['must be string'] }],
  [
    '{"email":"a@example.com","passwordHash":"secret"}',
    {
      passwordHash: [
        'must be a hash of argon2, bcrypt, scrypt, PBKDF2, phpass or crypt ($5$, $6$), in a form that the documents name',
      ],
    },
  ],
  [
    '{"email":"a@example.com","passwordHash":"$2b$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"}',
    { passwordHash: ['costs too much to verify'] },
  ],
  ['{"email":"a@example.com","password":"in the clear"}', { password: ['is not allowed'] }],
]

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { realHashing: true })

  t.test('each hash format signs in, and is rehashed with argon2id', async t => {
    for (const [kind, passwordHash] of Object.entries(HASHES)) {
      const email = freshEmail()
      t.match(await importAll(app, [{ email, passwordHash }]), [{ status: 'created' }], kind)
      t.equal((await signIn(app, email, `${PASSWORD}x`)).statusCode, 401, kind)
      t.equal((await signIn(app, email)).statusCode, 200, kind)
      const stored = (await app.services.storage.users.findByEmail(email))?.passwordHash
      t.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/, kind)
      t.equal((await signIn(app, email)).statusCode, 200, `${kind}, again`)
    }
  })

  t.test('each line is reported in order; repeated, every user exists and nothing changes', async t => {
    const [known, named] = [await signUp(app), uuidv7()]
    const lines = [
      { email: freshEmail(), firstName: 'New' },
      { email: `  ${known.email.toUpperCase()} `, firstName: 'Other', disabled: true },
      { email: freshEmail(), id: named.toUpperCase() },
      { email: freshEmail(), id: named },
      { email: freshEmail(), id: known.id },
    ]
    const again = [lines[0], lines[0]] as object[]
    const results = await importAll(app, [...lines, ...again])
    const first = results[0]?.id
    const taken = { id: ['is already taken'] }
    t.strictSame(results, [
      { line: 1, status: 'created', id: first },
      { line: 2, status: 'exists', id: known.id },
      ...(results[2]?.status === 'created'
        ? [
            { line: 3, status: 'created', id: named },
            { line: 4, status: 'failed', errors: taken },
          ]
        : [
            { line: 3, status: 'failed', errors: taken },
            { line: 4, status: 'created', id: named },
          ]),
      { line: 5, status: 'failed', errors: taken },
      { line: 6, status: 'exists', id: first },
      { line: 7, status: 'exists', id: first },
      { status: 'finished', created: 2, exists: 3, failed: 2 },
    ])
    t.match(await app.services.users.get(known.id), { firstName: null, disabled: false })
    const repeated = await importAll(app, [...lines, ...again])
    t.match(repeated.at(-1), { status: 'finished', created: 0, exists: 5, failed: 2 })
    t.strictSame(
      repeated.map(({ id }) => id),
      results.map(({ id }) => id),
    )
  })

  t.test('without a hash no password matches; without timestamps the account is created now', async t => {
    const email = freshEmail()
    const before = Date.now()
    const [result] = await importAll(app, [{ email }])
    for (const password of ['', 'x', PASSWORD]) t.equal((await signIn(app, email, password)).statusCode, 401)
    const user = await app.services.users.get(result?.id ?? '')
    t.match(user, { email, firstName: null, lastName: null, emailVerified: false, disabled: false })
    t.equal(user.lastRequestAt, null)
    t.equal(user.updatedAt, user.createdAt)
    t.ok(user.createdAt >= before && user.createdAt <= Date.now())
  })

  t.test('a disabled account stays disabled', async t => {
    const email = freshEmail()
    await importAll(app, [{ email, disabled: true, passwordHash: HASHES.scrypt }])
    t.equal((await signIn(app, email)).statusCode, 403)
  })

  t.test('hostile lines are reported, and the lines beside them imported', async t => {
    const good = HOSTILE.map(() => freshEmail())
    const parts = HOSTILE.flatMap(([line], index) => [
      line,
      '\n',
      JSON.stringify({ email: good[index] }),
      '\n',
    ])
    const results = await importAll(app, Buffer.concat(parts.map(part => Buffer.from(part))))
    for (const [index, [line, errors]] of HOSTILE.entries()) {
      const failed = { line: 2 * index + 1, status: 'failed', errors }
      t.same(results[2 * index], failed, line.toString().slice(0, 60))
      t.match(results[2 * index + 1], { line: 2 * index + 2, status: 'created' })
    }
    const [created, failed] = [HOSTILE.length, HOSTILE.length]
    t.strictSame(results.at(-1), { status: 'finished', created, exists: 0, failed })
    t.equal(results.length, 2 * HOSTILE.length + 1)
    t.equal(await app.services.users.count({ email: 'a@example.com' }), 0)
  })

  t.test(
    'lines end in LF or CRLF, the last line may end in neither; blank lines are counted and skipped',
    async t => {
      const [a, b, c] = [freshEmail(), freshEmail(), freshEmail()]
      const text = `\ufeff{"email":"${a}"}\r\n\n \t\r\n{"email":"${b}"}\n\n{"email":"${c}"}`
      const results = await importAll(app, text)
      t.strictSame(
        results.map(({ line, status }) => [line, status]),
        [
          [1, 'created'],
          [4, 'created'],
          [6, 'created'],
          [undefined, 'finished'],
        ],
      )
    },
  )

  t.test('an empty import creates no users', async t => {
    const nothing = [{ status: 'finished', created: 0, exists: 0, failed: 0 }]
    for (const text of ['', '\n', '\n\r\n ']) t.strictSame(await importAll(app, text), nothing)
  })

  t.test('an import may exceed the body limit of other routes, with chunks of any length', async t => {
    const emails = Array.from({ length: 1_200 }, () => freshEmail('many'))
    const text = emails.map(email => JSON.stringify({ email, firstName: 'é'.repeat(20) })).join('\n')
    const results = await importAll(app, text)
    t.equal(results.length, 1_201)
    t.ok(results.slice(0, -1).every(({ line, status }, index) => line === index + 1 && status === 'created'))
  })

  t.test('of concurrent imports and sign-ups of the same e-mails each e-mail is created once', async t => {
    const emails = Array.from({ length: 60 }, () => freshEmail('raced'))
    const reversed = emails.toReversed()
    const [one, two] = await Promise.all([
      importAll(
        app,
        emails.map(email => ({ email })),
      ),
      importAll(
        app,
        reversed.map(email => ({ email })),
      ),
      signUp(app, { email: freshEmail() }),
    ])
    const statuses = emails.map((_, index) => [one[index]?.status, two[59 - index]?.status].sort().join())
    t.ok(
      statuses.every(each => each === 'created,exists'),
      statuses.join(' '),
    )
    const ids = emails.map((_, index) => one[index]?.id === two[59 - index]?.id)
    t.notOk(ids.includes(false), 'both name the same user')
  })

  t.test('another media type is a 415; without the key the response is 401 for any body', async t => {
    const body = { method: 'POST', url: IMPORT, payload: `{"email":"${freshEmail()}"}` } as const
    for (const type of ['application/json', 'text/plain', 'application/x-ndjsonx', undefined]) {
      const headers = { ...asAdmin, ...(type !== undefined && { 'content-type': type }) }
      const response = await app.inject({ ...body, headers })
      t.equal(globalErrorOf(t, response, 415, type), 'The body must be application/x-ndjson')
    }
    for (const type of ['application/json', 'application/x-ndjson']) {
      globalErrorOf(t, await app.inject({ ...body, headers: { 'content-type': type } }), 401, type)
    }
    const elsewhere = { method: 'POST', url: '/account/sign-in', headers: NDJSON, payload: '{}' } as const
    t.equal(globalErrorOf(t, await app.inject(elsewhere), 415), 'The body must be application/json')
    const typed = { ...asAdmin, 'content-type': 'Application/X-NDJSON; charset=utf-8' }
    t.equal((await app.inject({ ...body, headers: typed })).statusCode, 200)
  })

  t.test('the response is uncacheable NDJSON', async t => {
    const { headers } = await post(app, '')
    t.match(headers, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
  })
})
