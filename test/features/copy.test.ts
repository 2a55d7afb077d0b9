/** `npm run cli -- copy` copies the tables of features (docs/design.md, "Storage" and "Features"). */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { newId } from '#base/ids'
import type { AccountFeature } from '#core/store/account-feature'
import { openPostgresStorage } from '#core/store/postgres'
import { openSqliteStorage } from '#core/store/sqlite'
import type { Storage } from '#core/store/store'
import { copy } from '#storage/copy/copy'
import { notes as notesFeature } from '../../examples/notes/notes.ts'
import { add, eventOf, NOW } from '../storage/contract/fixtures.ts'
import { temporaryFolder } from '../support/build.ts'
import { copyHere, targetVersions } from '../support/copy-runs.ts'
import { createDatabase, query } from '../support/postgres.ts'
import { pooledWriter } from '../support/writer-pool.ts'
import { labels } from './labels.ts'

const notes: AccountFeature = {
  ...notesFeature,
  tables: { notes: { owner: 'user_key', key: 'id', updatedAt: 'updated_at' } },
}

const FEATURES = [notes, labels]

const KEEP = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }

/** The operations of `notes`. */
interface NoteStore {
  addNote(note: object, max: number, event: object): Promise<string>
  changeNote(id: string, userId: string, text: string, at: number): Promise<unknown>
  removeNote(id: string, userId: string): Promise<boolean>
  listNotes(userId: string): Promise<readonly { id: string; text: string }[]>
}

const noteStore = (storage: Storage) => storage.features.notes as unknown as NoteStore

const addNote = async (storage: Storage, userId: string, text: string): Promise<string> => {
  const id = newId(NOW)
  const event = { ...eventOf(userId, NOW), type: 'note.created', details: { note: id } }
  await noteStore(storage).addNote({ id, text, createdAt: NOW, updatedAt: NOW }, 100, event)
  return id
}

/** The texts of a user's notes. */
const texts = async (storage: Storage, userId: string): Promise<string[]> =>
  (await noteStore(storage).listNotes(userId)).map(({ text }) => text).sort()

/** A source with `count` users, and an empty target. */
const setUp = async (t: Test, count: number, features: readonly AccountFeature[] = FEATURES) => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await createDatabase(t)
  const source = await openSqliteStorage(file, features, pooledWriter)
  t.teardown(() => source.close())
  const users = (await Promise.all(Array.from({ length: count }, () => add(source)))).map(({ user }) => user)
  const openTarget = async () => {
    const target = await openPostgresStorage(url, 2, features)
    t.teardown(() => target.close())
    return target
  }
  const run = () => copyHere(file, url, features)
  const execute = (text: string, ...values: readonly unknown[]): void => {
    const db = new Database(file)
    db.pragma('foreign_keys = ON')
    db.prepare(text).run(...values)
    db.close()
  }
  return { file, url, source, users, openTarget, run, execute }
}

const USER_KEY = '(SELECT key FROM users WHERE id = ?)'

t.test('rows of every type are copied with the key that their user has in the target', async t => {
  const { url, source, users, openTarget, run, execute } = await setUp(t, 3)
  const target = await openTarget()
  // Keys differ.
  await add(target)
  const [ada, eve] = users
  if (!(ada && eve)) throw new Error('too few')
  await addNote(source, ada.id, `{"a",\\b} 'NULL' 👩‍👩‍👧`)
  await addNote(source, eve.id, 'NULL')
  const insert = `INSERT INTO labels VALUES (?, ${USER_KEY}, ?, ?, ?, ?, ?, ?, ?)`
  const rows = [
    [
      'full',
      ada.id,
      'a',
      'say "hi"',
      9_007_199_254_740_993n,
      -7,
      0.1,
      '{"a": [1, null]}',
      Buffer.from([0, 255, 92]),
    ],
    ['empty', ada.id, null, null, null, null, null, null, null],
    ['limits', eve.id, '', '', -(2n ** 63n), 2 ** 31 - 1, 1e300, '"x"', Buffer.alloc(0)],
  ]
  for (const row of rows) execute(insert, ...row)
  execute(`INSERT INTO labelled VALUES ('x', ${USER_KEY}, 'full')`, ada.id)

  const { tables, complete } = await run()
  t.equal(complete, true)
  t.strictSame(tables, {
    notes: { added: 2, changed: 0, deleted: 0, conflicts: 0 },
    labels: { added: 3, changed: 0, deleted: 0, conflicts: 0 },
    labelled: { added: 1, changed: 0, deleted: 0, conflicts: 0 },
  })
  t.strictSame(await texts(target, ada.id), [`{"a",\\b} 'NULL' 👩‍👩‍👧`])
  t.strictSame(await texts(target, eve.id), ['NULL'])
  const copied = await query(
    url,
    `SELECT labels.id, users.id AS "userId", name, "a ""quoted"" name" AS quoted, size::text, rank, weight, details, content
     FROM labels JOIN users ON key = user_key ORDER BY labels.id`,
  )
  t.strictSame(copied, [
    {
      id: 'empty',
      userId: ada.id,
      name: null,
      quoted: null,
      size: null,
      rank: null,
      weight: null,
      details: null,
      content: null,
    },
    {
      id: 'full',
      userId: ada.id,
      name: 'a',
      quoted: 'say "hi"',
      size: '9007199254740993',
      rank: -7,
      weight: 0.1,
      details: { a: [1, null] },
      content: Buffer.from([0, 255, 92]),
    },
    {
      id: 'limits',
      userId: eve.id,
      name: '',
      quoted: '',
      size: '-9223372036854775808',
      rank: 2_147_483_647,
      weight: 1e300,
      details: 'x',
      content: Buffer.alloc(0),
    },
  ])

  const versions = async () => [
    await targetVersions(url),
    await query(url, 'SELECT xmin, xmax, ctid FROM notes UNION ALL SELECT xmin, xmax, ctid FROM labels'),
  ]
  const before = await versions()
  t.match((await run()).tables, { notes: { added: 0, changed: 0 }, labels: { added: 0, changed: 0 } })
  t.strictSame(await versions(), before, 'no row is written or locked by the second run')
})

t.test('rows that were deleted in either store stay deleted; later changes win', async t => {
  const { url, source, users, openTarget, run, execute } = await setUp(t, 1)
  const [{ id: userId } = { id: '' }] = users
  const added: Record<string, string> = {}
  for (const name of ['kept', 'deletedHere', 'deletedThere', 'changedHere', 'changedThere', 'changedInBoth'])
    added[name] = await addNote(source, userId, name)
  execute(`INSERT INTO labels (id, user_key, name) VALUES ('immutable', ${USER_KEY}, 'before')`, userId)
  await run()
  const target = await openTarget()
  const change = (storage: Storage, name: string, text: string, at: number) =>
    noteStore(storage).changeNote(added[name] ?? '', userId, text, at)
  await noteStore(source).removeNote(added.deletedHere ?? '', userId)
  await noteStore(target).removeNote(added.deletedThere ?? '', userId)
  await change(source, 'deletedThere', 'changed and deleted there', NOW + 1)
  await change(source, 'changedHere', 'here', NOW + 1)
  await change(target, 'changedThere', 'there', NOW + 1)
  await change(source, 'changedInBoth', 'here later', NOW + 2)
  await change(target, 'changedInBoth', 'there earlier', NOW + 1)
  await addNote(source, userId, 'new here')
  await addNote(target, userId, 'new there')
  execute(`UPDATE labels SET name = 'after'`)
  // The user was changed later in the target, which does not matter for rows.
  await target.users.update(userId, { firstName: 'There' }, eventOf(userId, NOW + 9), KEEP)

  const report = await run()
  t.match(report, { newerInTarget: 1, tables: { notes: { added: 1, changed: 2, deleted: 1, conflicts: 0 } } })
  const expected = ['here', 'here later', 'kept', 'new here', 'new there', 'there']
  t.strictSame(await texts(target, userId), expected)
  t.strictSame(
    await query(url, 'SELECT name FROM labels'),
    [{ name: 'before' }],
    'without updatedAt rows are immutable',
  )
  t.match((await run()).tables, { notes: { added: 0, changed: 0, deleted: 0 } })
  t.strictSame(await texts(target, userId), expected)

  execute('DELETE FROM labels')
  t.match((await run()).tables, { labels: { deleted: 1 } })
  t.strictSame(await query(url, 'SELECT FROM labels'), [])
})

t.test('a row that was given to another user in the source changes its owner', async t => {
  const { source, users, openTarget, run, execute } = await setUp(t, 2)
  const [ada, eve] = users
  if (!(ada && eve)) throw new Error('too few')
  const id = await addNote(source, ada.id, 'given')
  await run()
  execute(`UPDATE notes SET user_key = ${USER_KEY}, updated_at = updated_at + 1 WHERE id = ?`, eve.id, id)
  t.match((await run()).tables, { notes: { changed: 1 } })
  const target = await openTarget()
  t.strictSame(await texts(target, ada.id), [])
  t.strictSame(await texts(target, eve.id), ['given'])
})

t.test('users who are left out have no rows in the target', async t => {
  const { url, source, users, openTarget, run, execute } = await setUp(t, 4)
  const [inConflict, changedToConflict, deletedThere, deletedHere] = users
  if (!(inConflict && changedToConflict && deletedThere && deletedHere)) throw new Error('too few')
  const target = await openTarget()
  await add(target, { email: inConflict.email })
  for (const { id } of users) {
    await addNote(source, id, 'first')
    execute(`INSERT INTO labels (id, user_key) VALUES (?, ${USER_KEY})`, `label of ${id}`, id)
    execute(`INSERT INTO labelled VALUES (?, ${USER_KEY}, ?)`, `labelled by ${id}`, id, `label of ${id}`)
  }
  t.match(await run(), {
    conflicts: 1,
    tables: { notes: { added: 3 }, labels: { added: 3 }, labelled: { added: 3 } },
  })
  t.strictSame(await texts(target, inConflict.id), [])

  await add(target, { email: 'taken@example.com' })
  const change = { email: 'taken@example.com' }
  await source.users.update(changedToConflict.id, change, eventOf(changedToConflict.id, NOW + 1), KEEP)
  t.strictSame(await target.users.remove(eventOf(deletedThere.id, NOW + 1, 'user.deleted'), null), {
    outcomes: {},
  })
  t.strictSame(await source.users.remove(eventOf(deletedHere.id, NOW + 1, 'user.deleted'), null), {
    outcomes: {},
  })
  for (const { id } of [changedToConflict, deletedThere]) await addNote(source, id, 'second')
  t.match(await run(), {
    conflicts: 2,
    deletedInTarget: 1,
    deletedInSource: 1,
    tables: { notes: { added: 0 } },
  })
  t.strictSame(await texts(target, changedToConflict.id), ['first'])
  for (const table of ['notes', 'labels', 'labelled'])
    t.strictSame(await query(url, `SELECT count(*)::int AS rows FROM ${table}`), [{ rows: 1 }], table)
})

t.test('a user who was deleted in the source, but stays in the target, keeps the rows', async t => {
  const { source, users, openTarget, run } = await setUp(t, 1)
  const [{ id } = { id: '' }] = users
  await addNote(source, id, 'kept')
  await run()
  const target = await openTarget()
  await target.users.update(id, { firstName: 'There' }, eventOf(id, NOW + 9), KEEP)
  await source.users.remove(eventOf(id, NOW + 1, 'user.deleted'), null)
  t.match(await run(), { deletedInSource: 0, tables: { notes: { deleted: 0 } } })
  t.strictSame(await texts(target, id), ['kept'])
})

t.test('rows that another row of the target excludes are counted and left out', async t => {
  const { url, users, openTarget, run, execute } = await setUp(t, 2)
  const [ada, eve] = users
  if (!(ada && eve)) throw new Error('too few')
  await run()
  await openTarget()
  const insert = (id: string, userId: string, name: string) =>
    query(
      url,
      `INSERT INTO labels (id, user_key, name) SELECT '${id}', key, '${name}' FROM users WHERE id = '${userId}'`,
    )
  await insert('there', ada.id, 'same name')
  await insert('same key', eve.id, 'of eve')
  const add = `INSERT INTO labels (id, user_key, name) VALUES (?, ${USER_KEY}, ?)`
  execute(add, 'here', ada.id, 'same name')
  execute(add, 'same key', ada.id, 'of ada')
  execute(add, 'other', ada.id, 'other')
  for (const added of [1, 0]) t.match((await run()).tables, { labels: { added, conflicts: 2 } })
  const found = await query(url, 'SELECT id, name FROM labels ORDER BY id')
  t.strictSame(found, [
    { id: 'other', name: 'other' },
    { id: 'same key', name: 'of eve' },
    { id: 'there', name: 'same name' },
  ])
  await query(url, `DELETE FROM labels WHERE id = 'there'`)
  t.match((await run()).tables, { labels: { added: 1, conflicts: 1 } }, 'copied when nothing excludes it')
})

t.test('more rows than a batch are copied', async t => {
  const { url, users, run, execute } = await setUp(t, 1)
  const [{ id } = { id: '' }] = users
  execute(
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2501)
     INSERT INTO labels (id, user_key, name, content) SELECT 'label ' || n, ${USER_KEY}, n, zeroblob(5000) FROM n`,
    id,
  )
  t.match((await run()).tables, { labels: { added: 2_501 } })
  t.strictSame(await query(url, 'SELECT count(*)::int AS rows FROM labels'), [{ rows: 2_501 }])
  execute('DELETE FROM labels WHERE CAST(name AS integer) % 2 = 0')
  t.match((await run()).tables, { labels: { added: 0, deleted: 1_250 } })
})

t.test('a copy that is stopped before the tables continues with the next run', async t => {
  const { file, url, source, users, openTarget, run } = await setUp(t, 1)
  const [{ id } = { id: '' }] = users
  await addNote(source, id, 'a note')
  const stop = new AbortController()
  const options = { features: FEATURES, signal: stop.signal, onProgress: () => stop.abort() }
  t.match(await copy(file, url, options), { added: 1, events: 0, tables: {}, complete: false })
  t.match(await run(), { unchanged: 1, tables: { notes: { added: 1 } }, complete: true })
  t.strictSame(await texts(await openTarget(), id), ['a note'])
})

t.test('the source must have run the same migrations', async t => {
  const { file, url, users, source } = await setUp(t, 1, [notes])
  const [{ id } = { id: '' }] = users
  await addNote(source, id, 'left out')
  await t.rejects(copyHere(file, url, FEATURES), {
    message:
      /^the source: .*test\.db has not run the same migrations of the feature labels as this version has: start this version with it once, then copy$/,
  })
  t.strictSame(
    await query(url, `SELECT to_regclass('users') AS users`),
    [{ users: null }],
    'nothing was copied',
  )
  t.match(await copyHere(file, url, []), { added: 1, unknownFeatures: ['notes'], tables: {} })
})

t.test('a column that the target does not have stops the copy before anything is copied', async t => {
  const { url, run, execute } = await setUp(t, 1)
  execute('ALTER TABLE labels ADD COLUMN only_here text')
  await t.rejects(run(), { message: /^the target: the table labels has no column only_here/ })
  t.strictSame(await query(url, 'SELECT FROM users'), [])
})

t.test('a value that the target refuses names the table', async t => {
  const { users, run, execute } = await setUp(t, 1)
  const [{ id } = { id: '' }] = users
  execute(`INSERT INTO labels (id, user_key, rank) VALUES ('text', ${USER_KEY}, 'no number')`, id)
  await t.rejects(run(), {
    message: /^the target: the table labels: .*invalid input syntax for type integer/,
  })
})
