/** Imports and exports of users in the console: forms without script, with the progress of the API's streams. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createKey } from '../support/admin-keys.ts'
import { ENCRYPTION_KEY } from '../support/authenticator-apps.ts'
import { ADMIN_KEY, freshEmail, PASSWORD, signIn, signUp } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import type { FormClient } from '../support/form-client.ts'

const COOKIE = 'gatehouse-console'
const BOUNDARY = 'boundary-of-a-test'

/** A form with a file, as browsers send it. */
const multipart = (fields: Readonly<Record<string, string>>, file: string | Buffer | null): Buffer => {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="users.ndjson"\r\nContent-Type: application/octet-stream\r\n\r\n`
  return Buffer.concat([
    Buffer.from(parts.join('')),
    ...(file === null ? [] : [Buffer.from(head), Buffer.from(file), Buffer.from('\r\n')]),
    Buffer.from(`--${BOUNDARY}--\r\n`),
  ])
}

const upload = (
  app: FastifyInstance,
  client: FormClient,
  file: string | Buffer | null,
  fields: Readonly<Record<string, string>> = { adminKey: ADMIN_KEY },
  headers: Readonly<Record<string, string>> = {},
) =>
  app.inject({
    method: 'POST',
    url: '/console/users/import',
    headers: {
      cookie: `${COOKIE}=${client.cookie(COOKIE)}`,
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      accept: 'text/html',
      ...headers,
    },
    payload: multipart(fields, file),
  })

const linesOf = (users: readonly object[]): string => users.map(user => `${JSON.stringify(user)}\n`).join('')

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { env: { CONSOLE: 'on', ENCRYPTION_KEY } })
  const client = await signedInTo(app)

  t.test('a file is imported, and the page says what became of each line', async t => {
    const { email: known } = await signUp(app)
    const users = Array.from({ length: 450 }, () => ({ email: freshEmail(), firstName: '<b>Ann' }))
    const file = linesOf([...users, { email: known }, { email: 'no address' }, { email: freshEmail(), x: 1 }])
    await client.open('/console/users')
    t.match(client.page, 'console/users/import')
    await client.open('/console/users/import')
    t.match(client.page, 'enctype="multipart/form-data"')
    const { statusCode, body, headers } = await upload(app, client, file)
    t.equal(statusCode, 200, body)
    t.match(headers['content-type'], 'text/html')
    t.match(body, '453 of 453 lines: 450 added, 1 existed already, 2 failed')
    t.match(body, 'The import is complete.')
    t.match(body, /<th scope="row">452<\/th><td><code>email<\/code>/)
    t.match(body, /<\/main>\s*<\/body>\s*<\/html>/, 'the document is complete')
    t.notMatch(body, '<!--arriving-->')
    const again = await upload(app, client, linesOf(users))
    t.match(again.body, '0 added, 450 existed already, 0 failed')
  })

  t.test('of many failures the page shows the first hundred', async t => {
    const { body } = await upload(app, client, 'no json\n'.repeat(250))
    t.match(body, '0 added, 0 existed already, 250 failed')
    t.equal(body.match(/<th scope="row">\d+<\/th>/g)?.length, 100)
    t.match(body, 'And 150 more lines that failed.')
  })

  t.test('what is no file of users is refused, and nothing is imported', async t => {
    const user = linesOf([{ email: freshEmail() }])
    const expect = async (name: string, status: number, response: ReturnType<typeof upload>) => {
      const { statusCode, body } = await response
      t.equal(statusCode, status, name)
      t.notMatch(body, /\d added/, name)
    }
    await expect('no file', 400, upload(app, client, null))
    await expect('an empty file', 400, upload(app, client, ''))
    await expect('a file that is too large', 413, upload(app, client, Buffer.alloc(17 * 1_048_576, '\n')))
    await expect('another key', 403, upload(app, client, user, { adminKey: 'another' }))
    await expect('no key', 403, upload(app, client, user, {}))
    await expect('an unknown field', 400, upload(app, client, user, { adminKey: ADMIN_KEY, other: '1' }))
    await expect(
      'another site',
      403,
      upload(app, client, user, undefined, { origin: 'https://evil.example' }),
    )
    await expect(
      'no parts',
      400,
      upload(app, client, user, undefined, { 'content-type': 'multipart/form-data; boundary=other' }),
    )
    const form = await app.inject({
      method: 'POST',
      url: '/console/users/create',
      headers: {
        cookie: `${COOKIE}=${client.cookie(COOKIE)}`,
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      },
      payload: multipart({}, user),
    })
    t.equal(form.statusCode, 415, 'no other form takes a file')
  })

  t.test('an export is a file of the API, with hashes if asked', async t => {
    const { email } = await signUp(app)
    const download = async (fields: Readonly<Record<string, string>>) => {
      await client.open('/console/users/export')
      await client.submit('users/export', { adminKey: ADMIN_KEY, ...fields })
      return { client, lines: client.page.trim().split('\n') }
    }
    await client.open('/console/users/export')
    t.match(client.page, /about \d+ users/)
    await client.submit('users/export', { adminKey: 'another' })
    t.equal(client.status, 403)
    const plain = await download({})
    t.match(client.response?.headers, {
      'content-disposition': 'attachment; filename="users.ndjson"',
      'content-type': /ndjson/,
      'cache-control': 'no-store',
    })
    const found = plain.lines.map(line => JSON.parse(line)).find(user => user.email === email)
    t.match(found, { email })
    t.notOk('passwordHash' in found)
    const hashed = await download({ passwordHashes: 'on' })
    const withHash = hashed.lines.map(line => JSON.parse(line)).find(user => user.email === email)
    t.match(withHash.passwordHash, /^\$/)
    // What is exported can be imported.
    const { body } = await upload(app, client, client.page)
    t.match(body, `0 added, ${hashed.lines.length} existed already, 0 failed`)
    t.equal((await signIn(app, email, PASSWORD)).statusCode, 200)
  })

  t.test('a key sees and does what its scopes allow', async t => {
    const key = await createKey(app, ['users:read', 'users:import'])
    const limited = await signedInTo(app, key.text)
    await limited.open('/console/users')
    t.match(limited.page, 'console/users/import')
    t.notMatch(limited.page, 'console/users/export')
    await limited.open('/console/users/export')
    t.equal(limited.status, 403)
    const file = linesOf([{ email: freshEmail() }])
    t.match((await upload(app, limited, file, { adminKey: key.text })).body, '1 added')
    const none = await createKey(app, ['users:read', 'users:export'])
    const other = await signedInTo(app, none.text)
    t.equal((await upload(app, other, file, { adminKey: none.text })).statusCode, 403)
  })
})
