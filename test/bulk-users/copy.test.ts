/** `npm run cli -- copy`: the copied service works (docs/design.md, "Storage"). */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  asAdmin,
  bearer,
  build,
  type SignedUp,
  signIn,
  signUp,
  temporaryFolder,
  updateUser,
} from '../support/build.ts'
import { runCopy, sourceContent, targetContent, targetVersions } from '../support/copy-runs.ts'
import { createDatabase } from '../support/postgres.ts'

/** First and last names that array literals, decoders or normalisers could change. */
const NAMES = [
  ['Zoë', 'Zoe\u0308'],
  ['NULL', '{"a",\\b}'],
  ["O'Neill \\' --", 'x\u{10ffff}'],
  ['👩‍👩‍👧', 'שלום'],
  ['a\u2003b\u200dc', 'ΣΊΣΥΦΟΣ'],
  ['ß'.repeat(128), null],
]

const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')

const passwordOf = (url: string): string => new URL(url).password

t.test('accounts, tokens and passwords work on PostgreSQL; a second run changes nothing', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await createDatabase(t)
  // Without a configured secret, as is usual with SQLite: the service generates one.
  const before = await build(t, { env: { DATABASE_URL: `sqlite:${file}`, JWT_SECRET: '' } })
  const people: SignedUp[] = []
  for (const [firstName, lastName] of NAMES) {
    people.push(await signUp(before, { firstName, locale: 'de-CH', ...(lastName && { lastName }) }))
  }
  const [first, disabled] = [people[0], await signUp(before)]
  if (first === undefined) throw new Error('no sign-up')
  await updateUser(before, disabled.id, { disabled: true, lastName: null })
  const second = (await signIn(before, first.email)).json().accessToken
  const list = async (app: typeof before) =>
    (await app.inject({ url: '/admin/users?limit=100&sort=firstName', headers: asAdmin })).json()
  for (const { token } of people) await before.inject({ url: '/account', headers: bearer(token) })
  const expected = await list(before)
  await before.close()
  const [bytes, secretFile] = [digest(file), `${file}.jwt-secret`]

  const { code, stdout, stderr } = await runCopy(file, url).ended
  t.equal(code, 0, stderr)
  t.match(stdout, new RegExp(`^${NAMES.length + 1} users in the source:\n  ${NAMES.length + 1} +copied\n`))
  t.match(stdout, `The secret that the service generated is in ${secretFile}\n`)
  t.match(stdout, `The encryption key that the service generated is in ${file}.encryption-key\n`)
  t.equal(stderr, `${NAMES.length + 1} of ${NAMES.length + 1} users\n`, 'progress')
  t.notMatch(stdout + stderr, passwordOf(url))
  t.notMatch(stdout + stderr, readFileSync(secretFile, 'utf8').trim())
  t.equal(digest(file), bytes, 'the source is as it was')
  t.strictSame(await targetContent(url), sourceContent(file))

  const versions = await targetVersions(url)
  const again = await runCopy(file, url).ended
  t.equal(again.code, 0)
  t.match(again.stdout, new RegExp(`^  ${NAMES.length + 1} +unchanged$`, 'm'))
  t.match(again.stdout, /^0 sessions copied/m)
  t.strictSame(await targetVersions(url), versions, 'no row is written or locked by the second run')

  const JWT_SECRET = readFileSync(secretFile, 'utf8').trim()
  const after = await build(t, { env: { DATABASE_URL: url, JWT_SECRET } })
  t.strictSame(await list(after), expected, 'sorted alike too')
  for (const token of [...people.map(({ token }) => token), second]) {
    t.equal((await after.inject({ url: '/account', headers: bearer(token) })).statusCode, 200)
  }
  t.equal((await after.inject({ url: '/account', headers: bearer(disabled.token) })).statusCode, 401)
  t.equal((await signIn(after, first.email)).statusCode, 200)
  t.equal((await signIn(after, disabled.email)).statusCode, 403)
  await signUp(after)
})
