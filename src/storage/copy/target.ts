/** The PostgreSQL store that a copy writes: a slice of users, with their sessions and e-mail tokens, is one transaction. */
import type pg from 'pg'
import type { EventRow } from '#core/audit-log/event-rows'
import type { UserColumns } from '#core/users/user-rows'
import { Connection, connectionOptions } from '../postgres/connection.ts'
import { begin, reason, type Statement } from '../postgres/database.ts'
import { migratePrimary } from '../postgres/ensure-schema.ts'
import {
  givesAccess,
  isOwned,
  type NamedTable,
  type OwnedTable,
  type StoredFactor,
  type StoredFeature,
} from '../stored-feature.ts'
import {
  type Access,
  type AccessChanges,
  CopyError,
  differing,
  isEmptiedIn,
  planSlice,
  type SlicePlan,
  type SourceUser,
} from './plan.ts'
import type { DeletedUser, OwnedKey, Source } from './source.ts'
import * as statements from './statements.ts'
import { idsOf, type WithId } from './statements.ts'
import type { CopiedTable, SourceRow } from './table-statements.ts'
import * as tableStatements from './table-statements.ts'

/** Milliseconds that a statement of some thousand rows may take on the server, and that the client waits for its result. */
const STATEMENT_TIMEOUT = 120_000
const QUERY_TIMEOUT = 130_000

/** Milliseconds: a copy that is frozen inside a slice, for example by Ctrl-Z, must not block writes to `users` for as long. */
const BEGIN = begin(10_000)

/** Blocks writes to `users` until the slice is committed, so that the plan stays valid. Reads, sign-ins and last requests go on. */
const LOCK_USERS = { text: 'LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE', values: [] }

/** @throws {CopyError} in place of any error. */
const attempt = async <Result>(work: () => Promise<Result>, where = 'the target'): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    throw new CopyError(`${where}: ${reason(error)}`, { cause: error })
  }
}

/** @param where for the message of an error. */
const run = async <Row extends object>(
  client: pg.Client,
  { values, ...statement }: Statement,
  where?: string,
): Promise<readonly Row[]> => {
  const work = () => client.query<Row>({ ...statement, values: [...values] })
  const { rows } = await attempt(work, where)
  return rows
}

/** Connects to the database at `url` and migrates it. */
const connect = async (url: string, features: readonly StoredFeature[]): Promise<pg.Client> => {
  const primary = await migratePrimary(url, features)
  const client = new Connection({
    ...connectionOptions(primary.url),
    statementTimeout: STATEMENT_TIMEOUT,
    query_timeout: QUERY_TIMEOUT,
  })
  await client.connect()
  return client
}

/** Finds out how to write a table. @throws {CopyError} when the target does not have a column of the source. */
const describe = async <Table extends NamedTable>(
  client: pg.Client,
  source: Source,
  table: Table,
  mark: string,
): Promise<Table & CopiedTable> => {
  const found = await run<tableStatements.ColumnType>(client, tableStatements.columnTypes(table))
  const byName = new Map(found.map(column => [column.name, column]))
  const columns = source.columns(table).map(name => {
    const column = byName.get(name)
    if (column === undefined)
      throw new CopyError(
        `the target: the table ${table.name} has no column ${name}, which it has in the source: the migrations of its feature must create it on both engines`,
      )
    return column
  })
  return { ...table, columns, mark }
}

interface Tables {
  readonly sessions: CopiedTable & OwnedTable
  readonly emailTokens: CopiedTable & OwnedTable
  readonly ofFeatures: readonly CopiedTable[]
}

export class Target {
  readonly #client: pg.Client
  readonly #source: Source
  readonly #factors: readonly StoredFactor[]
  readonly #sessions: CopiedTable & OwnedTable
  readonly #emailTokens: CopiedTable & OwnedTable
  /** The tables of features. */
  readonly tables: readonly CopiedTable[]

  private constructor(
    client: pg.Client,
    source: Source,
    features: readonly StoredFeature[],
    { sessions, emailTokens, ofFeatures }: Tables,
  ) {
    this.#client = client
    this.#source = source
    this.#factors = features.flatMap(({ factor }) => factor ?? [])
    this.#sessions = sessions
    this.#emailTokens = emailTokens
    this.tables = ofFeatures
  }

  /** Connects to the database at `url` and migrates it. @throws {CopyError} also when a table of the source does not fit. */
  static async open(url: string, source: Source, features: readonly StoredFeature[]): Promise<Target> {
    const client = await attempt(() => connect(url, features))
    try {
      await run(client, statements.CREATE_COPIED_ROWS)
      await run(client, statements.CREATE_COPIED_EVENTS)
      const ofFeatures: CopiedTable[] = []
      for (const table of source.tables)
        ofFeatures.push(await describe(client, source, table, `${table.name}:`))
      const sessions = await describe(client, source, tableStatements.SESSIONS, '')
      const emailTokens = await describe(client, source, tableStatements.EMAIL_TOKENS, '')
      return new Target(client, source, features, { sessions, emailTokens, ofFeatures })
    } catch (error) {
      await client.end()
      throw error
    }
  }

  /**
   * Writes a slice of users with their sessions and e-mail tokens in one transaction. A row that was copied before and is not in
   * the target any more was deleted or revoked there, and is not added again.
   * @returns the plan, and the numbers of e-mail tokens that were added, and of sessions that were added or have a later timestamp now.
   * @throws {CopyError} after which only {@link close} may be called.
   */
  write(users: readonly SourceUser[]): Promise<SlicePlan & { sessions: number; emailTokens: number }> {
    return this.#transaction(async () => {
      const copiedIds = new Set(idsOf(await this.#run<WithId>(statements.copiedBefore(users))))
      const targetUsers = await this.#run<UserColumns>(statements.usersWithIdOrEmail(users))
      const access = await this.#accessOf(idsOf(differing(users, targetUsers)))
      const plan = planSlice(users, targetUsers, copiedIds, access)
      const { added, changed, unchanged, newerInTarget, emailMoves, fromSource } = plan
      // Changes come first because they free e-mails that added users may have.
      if (emailMoves.length > 0) await this.#run(statements.freeEmails(emailMoves))
      if (changed.length > 0) await this.#run(statements.changeUsers(changed))
      if (added.length > 0) await this.#run(statements.addUsers(added))
      const stale = new Set([...idsOf(changed), ...(await this.#revoke(users, plan))])
      await this.#run(statements.recordCopied(idsOf([...added, ...changed, ...unchanged, ...newerInTarget])))
      let sessions = await this.#addRowsOf(this.#sessions, fromSource)
      for (const rows of this.#source.rows(this.#sessions, users)) {
        sessions += (await this.#run(tableStatements.raiseSessions(this.#sessions, rows))).length
        for (const id of idsOf(await this.#run<WithId>(tableStatements.lowerSessions(this.#sessions, rows))))
          stale.add(id)
      }
      const emailTokens = await this.#addRowsOf(this.#emailTokens, fromSource)
      await this.#run(statements.raiseLastRequests(users))
      if (stale.size > 0) await this.#run(statements.notification([...stale]))
      return { ...plan, sessions, emailTokens }
    })
  }

  /**
   * Deletes users who were copied before and then deleted in the source, unless they were changed in the target since.
   * @returns the number of deleted users. @throws {CopyError} as {@link write}
   */
  delete(deleted: readonly DeletedUser[]): Promise<number> {
    return this.#transaction(async () => {
      const users = await this.#run<WithId & { readonly key: number }>(statements.deletedInSource(deleted))
      if (users.length === 0) return 0
      const ids = idsOf(users)
      // First, in the order in which instances lock them.
      await this.#run(tableStatements.removeMissing(this.#sessions, 'all', ids, []))
      const keys = users.map(({ key }) => key)
      for (const table of this.tables.toReversed())
        if (isOwned(table)) await this.#run(tableStatements.deleteRowsOf(table, keys))
      await this.#run(statements.deleteUsers(ids))
      await this.#run(statements.eraseIpAddresses(ids))
      await this.#run(statements.notification(ids))
      return ids.length
    })
  }

  /** The position in the source's audit log up to which it was copied. @throws {CopyError} */
  async copiedEvents(source: string): Promise<number> {
    const [row] = await this.#run<{ position: number }>(statements.copiedEvents(source))
    return row?.position ?? 0
  }

  /** Adds a slice of the source's audit log. @returns the number of added events. @throws {CopyError} as {@link write} */
  addEvents(source: string, events: readonly EventRow[]): Promise<number> {
    return this.#transaction(async () => {
      const added = await this.#run(statements.addEvents(events))
      await this.#run(statements.recordCopiedEvents(source, events.at(-1)?.position ?? 0))
      return added.length
    })
  }

  /**
   * Deletes the rows of a feature's table that were copied before and that the source does not have any more. Running instances of the
   * target are notified of their owners, or of rows without one: a row may be an API key or an admin key.
   * @returns their number. @throws {CopyError} as {@link write}
   */
  async deleteMissing(table: CopiedTable, size: number): Promise<number> {
    let deleted = 0
    let after: string | null = null
    for (;;) {
      const copied: readonly OwnedKey[] = await this.#run<OwnedKey>(
        tableStatements.copiedKeys(table, after, size),
      )
      const missing = this.#source.missingKeys(table, copied)
      if (missing.length > 0)
        deleted += await this.#transaction(async () => {
          const where = `the target: the table ${table.name}`
          const rows = await this.#run<{ key: string }>(tableStatements.deleteRows(table, missing), where)
          const owners = new Map(copied.map(({ key, userId }) => [key, userId]))
          const stale = new Set(rows.map(({ key }) => owners.get(key) ?? key))
          if (stale.size > 0) await this.#run(statements.notification([...stale]))
          return rows.length
        })
      if (copied.length < size) return deleted
      after = copied.at(-1)?.key ?? null
    }
  }

  /**
   * Writes a batch of rows of a feature's table, in one transaction. Rows of users who do not exist here are left out.
   * @returns how many were added, were changed, and are left out because another row has their key, or a value that must be unique.
   * @throws {CopyError} as {@link write}
   */
  writeRows(table: CopiedTable, given: readonly SourceRow[]) {
    const where = `the target: the table ${table.name}`
    return this.#transaction(async () => {
      const rows = await this.#withoutEmptied(table, given)
      // First, because a change may free a value that must be unique.
      const changed =
        table.updatedAt === undefined ? [] : await this.#run(tableStatements.changeRows(table, rows), where)
      const added = await this.#run(tableStatements.addRows(table, rows), where)
      await this.#run(tableStatements.recordCopiedRows(table, rows), where)
      const [left] = await this.#run<{ count: number }>(tableStatements.countConflicts(table, rows), where)
      return { added: added.length, changed: changed.length, conflicts: left?.count ?? 0 }
    })
  }

  /** Revokes impersonated sessions whose admin key was revoked in either store. @throws {CopyError} as {@link write} */
  revokeOrphanedImpersonations(): Promise<void> {
    return this.#transaction(async () => {
      const users = idsOf(await this.#run<WithId>(statements.REVOKE_ORPHANED_IMPERSONATIONS))
      if (users.length > 0) await this.#run(statements.notification(users))
    })
  }

  /** Makes users list the factors whose rows they have now. @throws {CopyError} as {@link write} */
  async setFactors(): Promise<void> {
    if (this.#factors.length === 0) return
    await this.#transaction(async () => {
      const users = idsOf(await this.#run<WithId>(statements.setFactors(this.#factors)))
      if (users.length > 0) await this.#run(statements.notification(users))
    })
  }

  /** Rolls back an open transaction. */
  async close(): Promise<void> {
    await this.#client.end()
  }

  async #transaction<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#run(BEGIN)
    await this.#run(LOCK_USERS)
    const result = await work()
    await this.#run({ text: 'COMMIT', values: [] })
    return result
  }

  /** @returns by the ids of users. Those whom not both stores have are missing. */
  async #accessOf(ids: readonly string[]): Promise<ReadonlyMap<string, Access>> {
    const access = new Map<string, Access>()
    if (ids.length === 0) return access
    const inTarget = await this.#run<AccessChanges>(statements.accessChanges(ids))
    const inSource = new Map(this.#source.accessChanges(ids).map(changes => [changes.id, changes]))
    for (const target of inTarget) {
      const source = inSource.get(target.id)
      if (source !== undefined) access.set(target.id, { source, target })
    }
    return access
  }

  /**
   * Removes copied sessions and e-mail tokens that the source has revoked or used since, and of users who are newer there all that it does
   * not have. In an account that the source has emptied, nothing else gives access.
   * @returns the ids of the users.
   */
  async #revoke(
    users: readonly SourceUser[],
    { newerInSource, emptied }: Pick<SlicePlan, 'newerInSource' | 'emptied'>,
  ): Promise<readonly string[]> {
    const revoked: string[] = []
    for (const table of [this.#sessions, this.#emailTokens]) {
      revoked.push(...(await this.#removeMissing(table, 'copied', users)))
      revoked.push(...(await this.#removeMissing(table, 'all', newerInSource)))
    }
    for (const table of this.tables.toReversed())
      if (givesAccess(table)) revoked.push(...(await this.#removeMissing(table, 'all', emptied)))
    return revoked
  }

  /** @returns the ids of the users whose rows were removed. */
  async #removeMissing(
    table: CopiedTable & OwnedTable,
    scope: 'all' | 'copied',
    users: readonly SourceUser[],
  ): Promise<readonly string[]> {
    if (users.length === 0) return []
    const rows = [...this.#source.rows(table, users)].flat()
    const keys = tableStatements.valuesIn(table, table.key, rows)
    return idsOf(await this.#run<WithId>(tableStatements.removeMissing(table, scope, idsOf(users), keys)))
  }

  /** Leaves out rows that give access to accounts that the target has emptied: a stranger may have added them in the source. */
  async #withoutEmptied(table: CopiedTable, rows: readonly SourceRow[]): Promise<readonly SourceRow[]> {
    if (!givesAccess(table)) return rows
    const access = await this.#accessOf([...new Set(rows.flatMap(([userId]) => userId ?? []))])
    const isEmptied = ({ source, target }: Access): boolean => isEmptiedIn(target, source)
    const emptied = new Set([...access].filter(([, both]) => isEmptied(both)).map(([id]) => id))
    return rows.filter(([userId]) => userId === null || !emptied.has(userId))
  }

  /** @returns the number of rows that were added. */
  async #addRowsOf(table: CopiedTable, users: readonly SourceUser[]): Promise<number> {
    let added = 0
    for (const rows of this.#source.rows(table, users)) {
      added += (await this.#run(tableStatements.addRows(table, rows))).length
      await this.#run(tableStatements.recordCopiedRows(table, rows))
    }
    return added
  }

  #run<Row extends object>(statement: Statement, where?: string): Promise<readonly Row[]> {
    return run<Row>(this.#client, statement, where)
  }
}
