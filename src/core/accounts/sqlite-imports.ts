/** Bulk import: many users in one call. Other writes wait until the call ends. */

import { invalidatesNothing, type Write } from '#storage/operations/write'
import type { Connection } from '#storage/sqlite/database'
import { type OwnedTable, quoted } from '#storage/stored-feature'
import type { AuditEvent } from '../audit-log/event.ts'
import { eventValues } from '../audit-log/stored-events.ts'
import { insertInto, parameters, prepareRecord, userRow } from '../store/sqlite-hot-operations.ts'
import type { Imported, ImportedRow } from '../store/store.ts'
import { insertOwned, type OwnedRow, uniquesOfNewUser } from '../users/owned-rows.ts'
import type { UserWithHash } from '../users/user.ts'
import { factorsColumn, USER_COLUMNS } from '../users/user-rows.ts'

const NO_ROWS: readonly OwnedRow[] = []

/** @param tables of features. */
export const prepareImportOperations = (db: Connection, tables: readonly OwnedTable[]) => {
  const record = prepareRecord(db)
  const insertUser = db.prepare<unknown[]>(
    `${insertInto('users', [...USER_COLUMNS, 'factors'])} ON CONFLICT DO NOTHING`,
  )
  const insertLastRequest = db.prepare('INSERT INTO last_requests (user_key, at) VALUES (?, ?)')
  const selectById = db.prepare<[string], number>('SELECT 1 FROM users WHERE id = ?').pluck()
  const selectIdByEmail = db.prepare<[string], string>('SELECT id FROM users WHERE email = ?').pluck()

  const prepareInsert = ({ table, values }: OwnedRow) => {
    const columns = Object.keys(values)
    return db.prepare<unknown[]>(
      `${insertOwned(tables, table, columns)} VALUES (${parameters(['owner', ...columns])})`,
    )
  }
  const inserts = new Map<string, ReturnType<typeof prepareInsert>>()
  const insertRow = (owner: number | bigint, row: OwnedRow): void => {
    const form = JSON.stringify([row.table, ...Object.keys(row.values)])
    const insert = inserts.get(form) ?? prepareInsert(row)
    inserts.set(form, insert)
    insert.run(owner, ...Object.values(row.values))
  }

  /** For each unique index, whether another row has the values of a row. */
  const prepareTaken = (table: string) =>
    uniquesOfNewUser(tables, table).map(columns => {
      const condition = columns.map(column => `${quoted(column)} = ?`).join(' AND ')
      const select = db
        .prepare<unknown[], number>(`SELECT 1 FROM ${quoted(table)} WHERE ${condition}`)
        .pluck()
      return ({ values }: OwnedRow) => select.get(columns.map(column => values[column] ?? null)) !== undefined
    })
  const taken = new Map<string, ReturnType<typeof prepareTaken>>()
  /** Whether another row has unique values of this one. One thread writes at a time, so none can take them before the insert. */
  const isTaken = (row: OwnedRow): boolean => {
    const checks = taken.get(row.table) ?? prepareTaken(row.table)
    taken.set(row.table, checks)
    return checks.some(check => check(row))
  }

  /** A user who conflicts is reported before rows that do: a repeated import finds both. */
  const existing = ({ id, email }: UserWithHash): Imported | null => {
    const idOfEmail = selectIdByEmail.get(email)
    if (idOfEmail !== undefined) return { status: 'exists', id: idOfEmail }
    return selectById.get(id) === undefined ? null : { status: 'idTaken' }
  }

  const importUser = (user: UserWithHash, event: AuditEvent, rows: readonly OwnedRow[]): Imported => {
    const conflicts = rows.flatMap((row, index) => (isTaken(row) ? [index] : []))
    if (conflicts.length > 0) return existing(user) ?? { status: 'rowsTaken', rows: conflicts }
    const { changes, lastInsertRowid } = insertUser.run(...userRow(user), factorsColumn(user.factors))
    if (changes === 1) {
      if (user.lastRequestAt !== null) insertLastRequest.run(lastInsertRowid, user.lastRequestAt)
      for (const row of rows) insertRow(lastInsertRowid, row)
      record(eventValues(event))
      return { status: 'created' }
    }
    return existing(user) as Imported
  }

  return {
    importUsers: (
      users: readonly UserWithHash[],
      events: readonly AuditEvent[],
      rows: readonly ImportedRow[],
    ): Write<readonly Imported[]> => {
      const rowsOf = Map.groupBy(rows, ({ user }) => user)
      return invalidatesNothing(
        users.map((user, index) =>
          importUser(user, events[index] as AuditEvent, rowsOf.get(index) ?? NO_ROWS),
        ),
      )
    },
  }
}
