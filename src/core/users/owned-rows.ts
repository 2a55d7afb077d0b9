/** Rows in the tables of features: deletion with their user, and clean-up. Names are from declarations. */

import { type Query, query, rows, type Steps, USER_KEY } from '#storage/operations/operation'
import { invalidatesNothing, type UncachedWrite } from '#storage/operations/write'
import {
  type AccessTable,
  grantsAccess,
  isOwned,
  type NamedTable,
  type OwnedTable,
  quoted,
  type StoredFeature,
  tablesOf,
  uniquesOf,
} from '#storage/stored-feature'
import type { AuditEvent } from '../audit-log/event.ts'
import { consequenceOf, recordStatement } from '../audit-log/stored-events.ts'

/** A row in a table of a feature, without the column that names the owner. */
export interface OwnedRow {
  readonly table: string
  readonly values: Readonly<Record<string, string | number | null>>
}

/** The tables of features whose rows belong to users, in the order of deletions. */
export interface OwnedTables {
  readonly all: readonly OwnedTable[]
  readonly mailed: readonly OwnedTable[]
  readonly factors: readonly OwnedTable[]
  readonly endWithSessions: readonly AccessTable[]
}

export const ownedTablesOf = (features: readonly StoredFeature[]): OwnedTables => {
  // A table that refers to another one is declared after it, so its rows are deleted first.
  const all = tablesOf(features).filter(isOwned).toReversed()
  return {
    all,
    mailed: all.filter(({ isMailed }) => isMailed === true),
    factors: all.filter(({ isFactor }) => isFactor === true),
    endWithSessions: all.filter(grantsAccess).filter(({ endsWithSessions }) => endsWithSessions === true),
  }
}

/** Deletes the rows of a user, who must be locked. */
export function* deleteOwned(tables: readonly OwnedTable[], userId: string): Steps<void> {
  for (const { name, owner } of tables) {
    yield {
      text: `DELETE FROM ${quoted(name)} WHERE ${quoted(owner)} = ${USER_KEY}`,
      values: [userId],
    }
  }
}

/** Deletes the rows of a user, who must be locked, in the order in which last requests lock them. @returns the keys of the rows. */
export function* takeOwned({ name, owner, key }: OwnedTable, userId: string): Steps<readonly string[]> {
  const taken = yield* rows<{ key: string }>({
    text: ({ forUpdate }) => `WITH owned AS (
        SELECT ${quoted(key)} AS key FROM ${quoted(name)}
        WHERE ${quoted(owner)} = ${USER_KEY} ORDER BY ${quoted(key)} ${forUpdate}
      )
      DELETE FROM ${quoted(name)} WHERE ${quoted(key)} IN (SELECT key FROM owned) RETURNING ${quoted(key)} AS key`,
    values: [userId],
  })
  return taken.map(row => row.key).toSorted()
}

/** Deletes the rows that end with all sessions of the event's user, who must be locked. Each is an event after the given one. */
export function* endWithSessions(tables: readonly AccessTable[], event: AuditEvent): Steps<void> {
  let last = event
  for (const table of tables) {
    const { type, detail } = table.grantsAccess
    for (const key of yield* takeOwned(table, event.userId)) {
      last = consequenceOf(last, type, { [detail]: key })
      yield recordStatement(last)
    }
  }
}

/** @throws {Error} if no table of that name has an owner. */
export const ownedTable = (tables: readonly OwnedTable[], name: string): OwnedTable => {
  const table = tables.find(table => table.name === name)
  if (table === undefined) throw new Error(`No feature declares a table ${name} whose rows belong to users`)
  return table
}

/** The unique indexes in which rows of a new user can conflict. @throws {Error} if no table of that name has an owner. */
export const uniquesOfNewUser = (
  tables: readonly OwnedTable[],
  name: string,
): readonly (readonly string[])[] => {
  const table = ownedTable(tables, name)
  return uniquesOf(table).filter(columns => !columns.includes(table.owner))
}

/** @returns an `INSERT` up to its columns, the owner first. @throws {Error} if no table of that name has an owner. */
export const insertOwned = (
  tables: readonly OwnedTable[],
  name: string,
  columns: readonly string[],
): string => {
  const table = ownedTable(tables, name)
  return `INSERT INTO ${quoted(name)} (${[table.owner, ...columns].map(quoted).join(', ')})`
}

export const cleanUpOperations = {
  /**
   * Removes at most `limit` old rows, oldest first, and skips locked ones. @param before rows with this value of the column or a higher one
   * stay. @returns whether there may be more.
   */
  removeOldRows: (
    { name, key }: Pick<NamedTable, 'name' | 'key'>,
    column: string,
    before: number | string,
    limit: number,
  ): Query<UncachedWrite<boolean>> =>
    query(
      {
        text: ({ forUpdateSkipLocked }) => `WITH old AS (
            SELECT ${quoted(key)} AS key FROM ${quoted(name)} WHERE ${quoted(column)} < $1
            ORDER BY ${quoted(column)} LIMIT $2 ${forUpdateSkipLocked}
          )
          DELETE FROM ${quoted(name)} WHERE ${quoted(key)} IN (SELECT key FROM old) RETURNING ${quoted(key)}`,
        values: [before, limit],
      },
      removed => invalidatesNothing(removed.length === limit),
    ),
}
