/** Imports of many users in one call. PostgreSQL runs one statement for all of them: `postgres-accounts.ts`. */
import { firstRow, rows, type Steps } from '#storage/operations/operation'
import { parameters } from '#storage/operations/parameters'
import { invalidatesNothing, type Write } from '#storage/operations/write'
import { type OwnedTable, quoted } from '#storage/stored-feature'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordStatement } from '../audit-log/stored-events.ts'
import { insertOwned, type OwnedRow, uniquesOfNewUser } from '../users/owned-rows.ts'
import type { UserWithHash } from '../users/user.ts'
import { factorsColumn } from '../users/user-rows.ts'
import { insertUser, userValues } from './stored-accounts.ts'

export type Imported =
  | { readonly status: 'created' }
  /** The e-mail already has a user, with this id. Nothing changed. */
  | { readonly status: 'exists'; readonly id: string }
  /** The id belongs to a user with another e-mail. */
  | { readonly status: 'idTaken' }
  /** Other rows have the values of unique columns. `rows` are the indexes of the rows that conflict, among those of the user. */
  | { readonly status: 'rowsTaken'; readonly rows: readonly number[] }

export interface ImportedRow extends OwnedRow {
  readonly user: number
}

const INSERT_USER = `${insertUser('factors')} ON CONFLICT DO NOTHING RETURNING key`

const NO_ROWS: readonly OwnedRow[] = []

/** A conflicting user is reported before conflicting rows: a repeated import finds both. */
function* existing({ id, email }: UserWithHash): Steps<Imported | null> {
  const ofEmail = yield* firstRow<{ id: string }>({
    text: 'SELECT id FROM users WHERE email = $1',
    values: [email],
  })
  if (ofEmail !== undefined) return { status: 'exists', id: ofEmail.id }
  const found = yield { text: 'SELECT 1 FROM users WHERE id = $1', values: [id] }
  return found.length === 0 ? null : { status: 'idTaken' }
}

export const importOperations = (tables: readonly OwnedTable[]) => {
  /** One operation writes at a time, so none can take the values before the insert. */
  function* isTaken({ table, values }: OwnedRow): Steps<boolean> {
    for (const columns of uniquesOfNewUser(tables, table)) {
      const equal = columns.map((column, index) => `${quoted(column)} = $${index + 1}`)
      const found = yield {
        text: `SELECT 1 FROM ${quoted(table)} WHERE ${equal.join(' AND ')}`,
        values: columns.map(column => values[column] ?? null),
      }
      if (found.length > 0) return true
    }
    return false
  }

  function* insertRow(owner: number, { table, values }: OwnedRow): Steps<void> {
    const columns = Object.keys(values)
    yield {
      text: `${insertOwned(tables, table, columns)} VALUES (${parameters(['owner', ...columns], 1)})`,
      values: [owner, ...Object.values(values)],
    }
  }

  function* importUser(user: UserWithHash, event: AuditEvent, ownRows: readonly OwnedRow[]): Steps<Imported> {
    const conflicts: number[] = []
    for (const [index, row] of ownRows.entries()) if (yield* isTaken(row)) conflicts.push(index)
    if (conflicts.length > 0) return (yield* existing(user)) ?? { status: 'rowsTaken', rows: conflicts }
    const [added] = yield* rows<{ key: number }>({
      text: INSERT_USER,
      values: [...userValues(user), factorsColumn(user.factors)],
    })
    if (added === undefined) return (yield* existing(user)) as Imported
    if (user.lastRequestAt !== null)
      yield {
        text: 'INSERT INTO last_requests (user_key, at) VALUES ($1, $2)',
        values: [added.key, user.lastRequestAt],
      }
    for (const row of ownRows) yield* insertRow(added.key, row)
    yield recordStatement(event)
    return { status: 'created' }
  }

  return {
    /**
     * Adds the users whose id and e-mail are free, all in one transaction. @param events one for each user, in the same order.
     * @param added rows of those users. A user whose row has a unique value (`FeatureTable.unique`) of another row is not added.
     * @returns one result for each user, in the same order.
     */
    *importUsers(
      users: readonly UserWithHash[],
      events: readonly AuditEvent[],
      added: readonly ImportedRow[],
    ): Steps<Write<readonly Imported[]>> {
      const rowsOf = Map.groupBy(added, ({ user }) => user)
      const results: Imported[] = []
      for (const [index, user] of users.entries())
        results.push(yield* importUser(user, events[index] as AuditEvent, rowsOf.get(index) ?? NO_ROWS))
      return invalidatesNothing(results)
    },
  }
}
