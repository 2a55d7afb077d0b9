/** Bulk import: many users in one call. Other writes wait until the call ends. */
import type { Imported, ImportedRow, OwnedRow } from '../../accounts/bulk-user-store.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { UserWithHash } from '../../users/user.ts'
import { eventValues } from '../operations/events.ts'
import { insertOwned } from '../operations/owned-rows.ts'
import { invalidatesNothing, type Write } from '../operations/write.ts'
import { factorsColumn, USER_COLUMNS } from '../rows.ts'
import type { OwnedTable } from '../stored-feature.ts'
import type { Connection } from './database.ts'
import { insertInto, prepareRecord, userRow } from './hot-operations.ts'
import { parameters } from './parameters.ts'

const NO_ROWS: readonly OwnedRow[] = []

/** @param tables of features. */
export const prepareImportOperations = (db: Connection, tables: readonly OwnedTable[]) => {
  const record = prepareRecord(db)
  const insertUser = db.prepare<unknown[]>(
    `${insertInto('users', [...USER_COLUMNS, 'factors'])} ON CONFLICT DO NOTHING`,
  )
  const insertLastRequest = db.prepare('INSERT INTO last_requests (user_key, at) VALUES (?, ?)')
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

  const importUser = (user: UserWithHash, event: AuditEvent, rows: readonly OwnedRow[]): Imported => {
    const { changes, lastInsertRowid } = insertUser.run(...userRow(user), factorsColumn(user.factors))
    if (changes === 1) {
      if (user.lastRequestAt !== null) insertLastRequest.run(lastInsertRowid, user.lastRequestAt)
      for (const row of rows) insertRow(lastInsertRowid, row)
      record(eventValues(event))
      return { status: 'created' }
    }
    const id = selectIdByEmail.get(user.email)
    return id === undefined ? { status: 'idTaken' } : { status: 'exists', id }
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
