/** A feature for tests whose operations make mistakes. */

import { lockUser } from '#core/users/user-locks'
import { defineFeature } from '#feature/declaration'
import { type Query, query, rows, type Steps, unlessTaken } from '#storage/operations/operation'
import { invalidates, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { table } from '#storage/stored-feature'

interface ThingsTable {
  id: string
  user_key: number
  number: number | null
  content: Uint8Array | null
}

const insert = (id: string, userId: string, number: unknown = null, content: unknown = null) => ({
  text: 'INSERT INTO things (id, user_key, number, content) SELECT $1, key, $3, $4 FROM users WHERE id = $2 RETURNING id',
  values: [id, userId, number, content],
})

function* add(id: string, userId: string, number?: unknown, content?: unknown): Steps<Write<string>> {
  yield insert(id, userId, number, content)
  return invalidatesNothing('added')
}

/** As an operation must add a row: it locks the user, so that a removal waits. */
function* addIfUserExists(id: string, userId: string): Steps<Write<string>> {
  if ((yield* lockUser(userId)) === undefined) return refusedFor(userId, 'refused')
  return yield* add(id, userId)
}

function* throws(id: string, userId: string): Steps<Write<string>> {
  yield insert(id, userId)
  throw new Error('a bug')
}

/** Adds a first row, then one that may be taken. */
function* endsWhenTaken(first: string, second: string, userId: string): Steps<Write<string>> {
  yield insert(first, userId)
  const added = yield* unlessTaken(insert(second, userId))
  return invalidatesNothing(added === 'taken' ? 'taken' : 'added')
}

function* continuesWhenTaken(first: string, second: string, userId: string): Steps<Write<string>> {
  try {
    yield insert(first, userId)
  } catch {
    yield insert(second, userId)
  }
  return invalidatesNothing('added')
}

/** What `finally` blocks have done. On SQLite they run on another thread. */
export const finished: string[] = []

function* yieldsInFinally(id: string, userId: string): Steps<Write<string>> {
  try {
    yield insert(id, userId)
    yield insert(id, userId)
  } finally {
    finished.push(id)
    yield insert(`${id} again`, userId)
  }
  return invalidatesNothing('added')
}

function* yieldsAfterFinally(id: string, userId: string): Steps<Write<string>> {
  try {
    yield insert(id, userId)
  } finally {
    finished.push(id)
  }
  yield insert(`${id} again`, userId)
  return invalidatesNothing('added')
}

// biome-ignore lint/correctness/useYield: an operation may have no statement
function* yieldsNothing(): Steps<Write<string>> {
  return invalidatesNothing('nothing')
}

function* yieldsNoStatement(id: string, userId: string): Steps<Write<string>> {
  yield insert(id, userId)
  yield rows(insert(`${id} again`, userId)) as never
  return invalidatesNothing('added')
}

function* returnsNoWrite(id: string, userId: string): Steps<Write<string>> {
  yield insert(id, userId)
  return 'added' as never
}

function* returnsFunction(id: string, userId: string): Steps<Write<() => void>> {
  yield insert(id, userId)
  return invalidatesNothing(() => undefined)
}

function* returnsArgument(argument: unknown): Steps<Write<unknown>> {
  yield insert('never', 'nobody')
  return invalidatesNothing(argument)
}

function* returnsRows(count: number): Steps<Write<unknown>> {
  const text = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count}) SELECT n, 'x' AS x FROM n`
  return invalidatesNothing(yield* rows({ text, values: [] }))
}

function* runs(text: string, ...values: readonly unknown[]): Steps<Write<unknown>> {
  return invalidatesNothing(yield* rows({ text, values }))
}

/** Changes a user without the operations of the core. */
function* disable(userId: string): Steps<Write<string>> {
  yield* lockUser(userId)
  yield { text: 'UPDATE users SET disabled = 1, version = version + 1 WHERE id = $1', values: [userId] }
  return invalidates(userId, 'disabled')
}

function* signOut(userId: string): Steps<Write<string>> {
  yield* lockUser(userId)
  const text = 'DELETE FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = $1)'
  yield { text, values: [userId] }
  return invalidates(userId, 'signed out')
}

/** On SQLite, of the writer thread. */
// biome-ignore lint/correctness/useYield: it does not get that far
function* exits(): Steps<Write<never>> {
  process.exit(1)
}

const find = (id: unknown): Query<ThingsTable | undefined> =>
  query(
    { name: 'thing', text: 'SELECT id, number, content FROM things WHERE id = $1', values: [id] },
    ([thing]: readonly ThingsTable[]) => thing,
  )

const read = (text: string): Query<readonly object[]> =>
  query({ text, values: [] }, (found: readonly object[]) => found)

const count = (): Query<number> =>
  query({ text: 'SELECT count(*) AS count FROM things', values: [] }, ([row]: readonly { count: number }[]) =>
    Number(row?.count),
  )

export const attacks = defineFeature({
  name: 'attacks',
  module: import.meta.url,
  migrations: {
    '0001_things': {
      async up(db, { engine, text, keyType }) {
        await db.schema
          .createTable('things')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column => column.notNull().references('users.key'))
          .addColumn('number', engine === 'sqlite' ? 'real' : 'double precision')
          .addColumn('content', engine === 'sqlite' ? 'blob' : 'bytea')
          .execute()
        await db.schema.createIndex('things_by_user_key').on('things').column('user_key').execute()
      },
    },
  },
  tables: { things: table<ThingsTable>({ owner: 'user_key', key: 'id' }) },
  operations: {
    add,
    addIfUserExists,
    throws,
    endsWhenTaken,
    continuesWhenTaken,
    yieldsInFinally,
    yieldsAfterFinally,
    yieldsNothing,
    yieldsNoStatement,
    returnsNoWrite,
    returnsFunction,
    returnsArgument,
    returnsRows,
    runs,
    disable,
    signOut,
    exits,
    returnsNoGenerator: (() => invalidatesNothing('done')) as never,
    returnsAsyncGenerator: async function* () {
      yield { text: 'SELECT 1', values: [] }
      return invalidatesNothing('done')
    } as never,
    '"; DROP TABLE things; --': add,
  },
  reads: { find, read, count },
  services: { attacks: ({ store }) => store },
})
