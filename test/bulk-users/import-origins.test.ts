/**
 * `users import --from`: files in the formats of other systems (`origins/`). Their hashes are of passlib, Django, bcrypt, argon2-cffi and
 * OpenSSL as Python has them, for one password.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { ENCRYPTION_KEY } from '../support/authenticator-apps.ts'
import { asAdmin, build, JWT_SECRET, signIn, temporaryFolder } from '../support/build.ts'
import { exportAll } from '../support/bulk-users.ts'
import { pipeToCli, runCommand } from '../support/cli.ts'
import { createDatabase } from '../support/postgres.ts'

const PASSWORD = 'correct horse é battery'

const FILES = join(import.meta.dirname, 'origins')

const file = (name: string): string => join(FILES, name)

interface Case {
  readonly args: readonly string[]
  /** The counts of the summary. */
  readonly summary: string
  /** Who can sign in with {@link PASSWORD}. */
  readonly signsIn: readonly string[]
  /** Who needs a code besides. */
  readonly needsCode?: readonly string[]
  /** Who cannot. */
  readonly refused?: readonly string[]
  /** What users have in an export. */
  readonly users: Readonly<Record<string, object>>
  readonly leftOut?: readonly string[]
}

const CASES: Readonly<Record<string, Case>> = {
  auth0: {
    args: [file('auth0.ndjson'), '--hashes', file('auth0-hashes.ndjson')],
    summary: '3 users created, 0 already existed, 0 lines failed',
    signsIn: ['ann@auth0.example'],
    refused: ['ben@auth0.example', 'cleo@auth0.example'],
    users: {
      'ann@auth0.example': {
        firstName: 'Ann',
        lastName: 'Lee',
        emailVerified: true,
        createdAt: '2021-03-05T16:35:16.775Z',
        lastRequestAt: '2022-04-05T10:00:00.000Z',
        userMetadata: { theme: 'dark' },
        appMetadata: { plan: 'gold', importedId: 'auth0|60425dc43519d90068f82973' },
      },
      'ben@auth0.example': {
        credentials: {
          identities: [{ issuer: 'https://accounts.google.com', subject: '115012345678901234567' }],
        },
      },
      'cleo@auth0.example': { disabled: true, emailVerified: false },
    },
    leftOut: ['usernames, of 1 user', 'passwords of users whose second step is not in the export, of 1 user'],
  },
  firebase: {
    args: [file('firebase.json'), '--hash-parameters', file('firebase-parameters.txt')],
    summary: '3 users created, 0 already existed, 1 line failed',
    signsIn: ['ann@firebase.example'],
    refused: ['cleo@firebase.example'],
    users: {
      'ann@firebase.example': {
        firstName: 'Ann',
        lastName: 'Mary Lee',
        emailVerified: true,
        createdAt: '2020-09-13T12:26:40.000Z',
        appMetadata: { admin: true, importedId: 'Zk3YwQ0aXfR1bTnUe7vJ5pLm2C83' },
      },
      'ben@firebase.example': {
        credentials: { identities: [{ provider: 'google', subject: '115098765432109876543' }] },
      },
      'cleo@firebase.example': { disabled: true },
    },
    leftOut: ['pictures, of 1 user', 'identities of providers whose issuer is not known, of 1 user'],
  },
  'supabase, as CSV': {
    args: [file('supabase.csv')],
    summary: '2 users created, 0 already existed, 0 lines failed',
    signsIn: ['ann@supabase.example'],
    refused: ['ben@supabase.example'],
    users: {
      'ann@supabase.example': {
        id: '3f0c6b3e-8a76-4b3e-9d60-1f4f4a0f9a11',
        firstName: 'Ann',
        lastName: '"the" Lee',
        emailVerified: true,
        createdAt: '2023-01-30T09:30:00.123Z',
        lastRequestAt: '2024-01-31T09:30:00.000Z',
        userMetadata: { theme: 'dark' },
        appMetadata: { plan: 'gold' },
      },
      'ben@supabase.example': { disabled: true, emailVerified: false },
    },
    leftOut: ['phone numbers, of 1 user'],
  },
  'supabase, with identities and factors': {
    args: [file('supabase.ndjson')],
    summary: '1 user created, 0 already existed, 0 lines failed',
    signsIn: [],
    needsCode: ['ann2@supabase.example'],
    users: {
      'ann2@supabase.example': {
        factors: ['totp'],
        credentials: {
          totpSecret: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ',
          identities: [{ provider: 'google', subject: '115000000000000000001' }],
        },
      },
    },
  },
  keycloak: {
    args: [file('keycloak.json')],
    summary: '5 users created, 0 already existed, 1 line failed',
    signsIn: ['ann@keycloak.example', 'dan@keycloak.example'],
    needsCode: ['ben@keycloak.example'],
    refused: ['cleo@keycloak.example', 'eve@keycloak.example'],
    users: {
      'ann@keycloak.example': {
        firstName: 'Ann',
        locale: 'de',
        roles: ['editor'],
        userMetadata: { locale: ['de'], team: ['blue'] },
        createdAt: '2020-09-13T12:26:40.001Z',
      },
      'ben@keycloak.example': { credentials: { totpSecret: 'MFRGGZDFMZTWQ2LKGEZDGNBVGY3TQOJQ' } },
      'dan@keycloak.example': { credentials: { identities: [{ subject: '115000000000000000004' }] } },
    },
    leftOut: [
      'groups and roles of clients, of 1 user',
      'passwords of users whose second step is not in the export, of 1 user',
    ],
  },
  cognito: {
    args: [file('cognito.json')],
    summary: '2 users created, 0 already existed, 0 lines failed',
    signsIn: [],
    users: {
      'ann@cognito.example': {
        id: '9f0c6b3e-8a76-4b3e-9d60-1f4f4a0f9a31',
        firstName: 'Ann',
        lastName: 'Lee',
        emailVerified: true,
        createdAt: '2023-01-31T08:30:00.123Z',
        updatedAt: '2023-01-31T08:30:00.123Z',
        userMetadata: { team: 'blue' },
      },
      'ben@cognito.example': { disabled: true, emailVerified: false },
    },
    leftOut: ['passwords, which Cognito does not export, of 2 users', 'phone numbers, of 1 user'],
  },
  clerk: {
    args: [file('clerk.csv')],
    summary: '2 users created, 0 already existed, 0 lines failed',
    signsIn: [],
    needsCode: ['ann@clerk.example'],
    users: {
      'ann@clerk.example': {
        emailVerified: true,
        appMetadata: { importedId: 'user_2aBcDeFgHiJkLmNoPqRsTuVw' },
      },
      'ben@clerk.example': { emailVerified: false },
    },
    leftOut: ['usernames, of 1 user', 'phone numbers, of 1 user'],
  },
  django: {
    args: [file('django.json')],
    summary: '6 users created, 0 already existed, 0 lines failed',
    signsIn: ['user0@django.example', 'user2@django.example', 'user3@django.example', 'user4@django.example'],
    refused: ['user1@django.example', 'user5@django.example'],
    users: {
      'user0@django.example': {
        firstName: 'Ann',
        roles: ['staff', 'superuser'],
        appMetadata: { importedId: '1' },
        createdAt: '2023-01-31T09:30:00.000Z',
        lastRequestAt: '2024-01-31T09:30:00.123Z',
      },
      'user1@django.example': { disabled: true },
    },
    leftOut: ['usernames, of 6 users', 'groups and permissions, of 1 user'],
  },
  wordpress: {
    args: [file('wordpress.csv')],
    summary: '2 users created, 0 already existed, 0 lines failed',
    signsIn: ['ann@wordpress.example', 'ben@wordpress.example'],
    users: {
      'ann@wordpress.example': {
        firstName: 'Ann',
        lastName: 'Lee',
        roles: ['administrator', 'editor'],
        createdAt: '2023-01-31T09:30:00.000Z',
      },
    },
    leftOut: ['usernames, of 1 user'],
  },
  devise: {
    args: [file('devise.csv')],
    summary: '2 users created, 0 already existed, 0 lines failed',
    signsIn: ['ann@devise.example'],
    refused: ['ben@devise.example'],
    users: {
      'ann@devise.example': { emailVerified: true, lastRequestAt: '2024-01-31T09:30:00.123Z' },
      'ben@devise.example': { disabled: true, emailVerified: false },
    },
  },
  aspnet: {
    args: [file('aspnet.csv')],
    summary: '2 users created, 0 already existed, 0 lines failed',
    signsIn: ['ann@aspnet.example'],
    refused: ['ben@aspnet.example'],
    users: {
      'ann@aspnet.example': { id: '7f0c6b3e-8a76-4b3e-9d60-1f4f4a0f9a41', emailVerified: true },
      'ben@aspnet.example': { disabled: true, emailVerified: false },
    },
    leftOut: ['usernames, of 1 user', 'phone numbers, of 1 user'],
  },
}

const usersOf = async (app: FastifyInstance) =>
  (await exportAll(app, '?passwordHashes=true')) as unknown as { email: string; passwordHash: string }[]

t.test('users of other systems sign in with their passwords', async t => {
  const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(t), 'test.db')}`, JWT_SECRET }
  const app = await build(t, { env, realHashing: true })
  for (const [
    title,
    { args, summary, users, signsIn, needsCode = [], refused = [], leftOut = [] },
  ] of Object.entries(CASES)) {
    const command = ['users', 'import', ...args, '--from', title.split(',', 1)[0] as string]
    const { stdout, stderr } = await runCommand(command, env)
    t.equal(stdout, `${summary}\n`, `${title}: ${stderr}`)
    for (const text of leftOut) t.match(stderr, `Left out: ${text}`, title)
    const again = await runCommand(command, env)
    t.match(again.stdout, /^0 users created/, `${title}: again`)
    const exported = await usersOf(app)
    for (const [email, expected] of Object.entries(users))
      t.match(
        exported.find(each => each.email === email),
        expected,
        email,
      )
    for (const email of signsIn) t.equal((await signIn(app, email, PASSWORD)).statusCode, 200, email)
    for (const email of needsCode) {
      const response = await signIn(app, email, PASSWORD)
      t.equal(response.statusCode, 401, email)
      t.match(response.json(), { errors: { code: ['is required'] } })
    }
    for (const email of refused)
      t.ok([401, 403].includes((await signIn(app, email, PASSWORD)).statusCode), email)
    for (const email of [...signsIn, ...needsCode])
      t.equal((await signIn(app, email, 'another password 7')).statusCode, 401, email)
  }
  const rehashed = await usersOf(app)
  for (const { signsIn } of Object.values(CASES))
    for (const email of signsIn)
      t.match(rehashed.find(each => each.email === email)?.passwordHash, /^\$argon2id\$v=19\$m=19456/, email)
})

t.test('broken and hostile files are reported by line, and the rest goes on', async t => {
  const folder = temporaryFolder(t)
  const env = { DATABASE_URL: `sqlite:${join(folder, 'test.db')}`, JWT_SECRET }
  await build(t, { env })
  let number = 0
  const run = async (from: string, content: string | Buffer, ...more: readonly string[]) => {
    number += 1
    const path = join(folder, `file-${number}`)
    writeFileSync(path, content)
    return runCommand(['users', 'import', path, '--from', from, ...more], env)
  }
  const good = { localId: 'a', email: 'good1@example.com' }
  const json = (...users: readonly string[]): string =>
    `{"kind":"x, \\"users\\": [","users":[${users.join(',\n')}],"more":[{}]}`

  const firebase = await run(
    'firebase',
    json(
      '{"email": broken}',
      JSON.stringify(good),
      '7',
      '[]',
      '{"email":"no e-mail"}',
      `{"email":"long@example.com","x":"${'x'.repeat(1_100_000)}"}`,
      '{"email":"good2@example.com","displayName":"]},{\\"\\\\"}',
      '{"email":"good1@example.com"}',
      '{"email":"costly@example.com","passwordHash":"AAAA","salt":"AAAA"}',
      '{"email":{"a":1},"__proto__":{"email":"x@example.com"},"createdAt":"-5","customAttributes":"{"}',
    ),
  )
  t.equal(firebase.stdout, '3 users created, 1 already existed, 6 lines failed\n')
  t.match(firebase.stderr, 'Line 1: is not valid JSON')
  t.match(firebase.stderr, 'Line 3: is not an object')
  t.match(firebase.stderr, 'Line 6: is longer than 1048576 bytes')
  t.match(firebase.stderr, 'Left out: passwords, because --hash-parameters is not given, of 1 user')

  for (const [title, content, message] of [
    ['another document', '{"accounts":[]}', 'there is no list named users'],
    [
      'a cut document',
      '{"users":[{"email":"cut1@example.com"},{"ema',
      'the file ends within the list of users',
    ],
  ] as const) {
    const { code, stderr } = await run('firebase', content)
    t.equal(code, 1, title)
    t.match(stderr, message, title)
  }
  t.match(await run('firebase', ''), { code: 0, stdout: /^0 users created/ })
  t.match(await run('firebase', '{"users":[]}'), { code: 0, stdout: /^0 users created/ })
  t.match(await run('firebase', Buffer.from('\ufeff{"users":[]}', 'utf16le')), { code: 1 })
  t.match(await run('auth0', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])), { code: 1, stderr: /UTF-8/ })
  t.match(await run('auth0', `\n\n{"email":"late@example.com"}\r\n${'y'.repeat(2_000_000)}\n`), {
    stdout: '1 user created, 0 already existed, 1 line failed\n',
    stderr: /Line 4: is longer/,
  })

  const table = await run(
    'wordpress',
    'ID,user_email,user_pass\n1,one@example.com,$P$Z2ztRkzvLGlTQ4ivQZ8YNrJnN3HnkC0\n2,two@example.com\n3,"three@example.com",\n4,"four@example.com\n5,five@example.com,',
  )
  t.match(table.stderr, 'Line 2: The passwordHash costs too much to verify')
  t.match(table.stderr, /Line 3: is not a row of the table/)
  t.match(table.stdout, /^1 user created/)
  t.match(await run('wordpress', `ID,user_email\n1,"${'x'.repeat(3_000_000)}`), { code: 1 })

  for (const parameters of ['', 'nothing', 'base64_signer_key: AA==', 'x'.repeat(70_000)]) {
    const path = join(folder, 'parameters')
    writeFileSync(path, parameters)
    const { code, stderr } = await run('firebase', json(JSON.stringify(good)), '--hash-parameters', path)
    t.not(code, 0)
    t.match(stderr, '--hash-parameters')
  }
  t.match(await run('django', '[]', '--hashes', file('auth0-hashes.ndjson')), {
    stderr: /Django has no file of hashes/,
  })
  t.match(await run('django', '[]', '--hash-parameters', file('firebase-parameters.txt')), {
    stderr: /Django has none/,
  })
  t.match(await run('nowhere', '[]'), { stderr: /--from must be one of auth0/ })
  t.match(await run('auth0', '', '--hashes', join(folder, 'absent')), { stderr: /--hashes/ })
  t.match(
    await runCommand(['users', 'import', file('auth0.ndjson'), '--hashes', file('auth0-hashes.ndjson')], env),
    {
      stderr: /need --from/,
    },
  )
})

t.test('standard input, --json, and PostgreSQL', async t => {
  const env = {
    DATABASE_URL: await createDatabase(t),
    JWT_SECRET,
    ENCRYPTION_KEY,
  }
  const { stdout, code } = await pipeToCli(
    readFileSync(file('keycloak.json')),
    ['users', 'import', '--from', 'keycloak', '--json'],
    env,
  )
  t.equal(code, 1)
  t.match(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''), { status: 'finished', created: 5, failed: 1 })
  const app = await build(t, { env, realHashing: true })
  t.equal((await signIn(app, 'ann@keycloak.example', PASSWORD)).statusCode, 200)
  const { results } = (await app.inject({ url: '/admin/users?limit=10', headers: asAdmin })).json()
  t.equal(results.length, 5)
})
