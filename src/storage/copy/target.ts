/** The PostgreSQL store that a copy writes: a slice of users, with their sessions and e-mail tokens, is one transaction. */
import pg from 'pg'
import { begin, connectionOptions, ignore, reason, type Statement } from '../postgres/database.ts'
import { migratePrimary } from '../postgres/ensure-schema.ts'
import type { EventRow, UserColumns } from '../rows.ts'
import {
  isOwned,
  type NamedTable,
  type OwnedTable,
  type StoredFactor,
  type StoredFeature,
  tablesOf,
} from '../stored-feature.ts'
import {
  type AccessChanges,
  CopyError,
  planSlice,
  type SlicePlan,
  type SourceUser,
  withLaterAccess,
} from './plan.ts'
import type { DeletedUser, OwnedKey, Source, SourceRow } from './source.ts'
import * as statements from './statements.ts'
import { idsOf, type WithId } from './statements.ts'
import type { CopiedTable } from './table-statements.ts'
import * as tableStatements from './table-statements.ts'

/** Milliseconds that a statement of some thousand rows may take on the server, and that the client waits for its result. */
const STATEMENT_TIMEOUT = 120_000
const QUERY_TIMEOUT = 130_000

/** Milliseconds: a copy that is frozen inside a slice, for example by Ctrl-Z, must not block writes to `users` for as long. */
const BEGIN = begin(10_000)

/** Blocks writes to `users` until the slice is committed, so that the plan stays valid. Reads, sign-ins and last requests go on. */
const LOCK_USERS = { text: 'LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE', values: [] }

export interface WrittenSlice extends SlicePlan {
  /** Sessions that were added or have a later timestamp now. */
  readonly sessions: number
  readonly emailTokens: number
}

/** Rows of a feature's table that a batch has written. */
export interface WrittenRows {
  readonly added: number
  /** Rows that differed and are now as in the source. */
  readonly changed: number
  /** Rows left out because another row of the target has their key, or a value that must be unique. */
  readonly conflicts: number
}

/** @throws {CopyError} in place of any error. */
const attempt = async <Result>(work: () => Promise<Result>, where = 'the target'): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    throw new CopyError(`${where}: ${reason(error)}`, { cause: error })
  }
}

export class Target {
  readonly #client: pg.Client
  readonly #ownedTables: readonly OwnedTable[]
  readonly #factors: readonly StoredFactor[]

  private constructor(client: pg.Client, features: readonly StoredFeature[]) {
    this.#client = client
    this.#ownedTables = tablesOf(features).filter(isOwned)
    this.#factors = features.flatMap(({ factor }) => factor ?? [])
  }

  /** Connects to the database at `url` and migrates it. @throws {CopyError} */
  static open(url: string, features: readonly StoredFeature[]): Promise<Target> {
    return attempt(async () => {
      const primary = await migratePrimary(url, features)
      const client = new pg.Client({
        ...connectionOptions(primary.url),
        statement_timeout: STATEMENT_TIMEOUT,
        query_timeout: QUERY_TIMEOUT,
      })
      // The next statement reports a broken connection.
      client.on('error', ignore)
      await client.connect()
      const target = new Target(client, features)
      await target.#run(statements.CREATE_COPIED_ROWS)
      await target.#run(statements.CREATE_COPIED_EVENTS)
      return target
    })
  }

  /**
   * Writes a slice of users with their sessions and e-mail tokens in one transaction. A row that was copied before and is not in
   * the target any more was deleted or revoked there, and is not added again.
   * @throws {CopyError} after which only {@link close} may be called.
   */
  write(users: readonly SourceUser[], source: Source): Promise<WrittenSlice> {
    return this.#transaction(async () => {
      const copiedIds = new Set(idsOf(await this.#run<WithId>(statements.copiedBefore(users))))
      const targetUsers = await this.#run<UserColumns>(statements.usersWithIdOrEmail(users))
      const plan = planSlice(users, targetUsers, copiedIds)
      const { added, unchanged, emailMoves } = plan
      const changed = await this.#withLaterAccess(plan.changed, targetUsers, source)
      const asInSource = new Set(plan.changed.filter((user, index) => changed[index] === user))
      const newerInSource = plan.newerInSource.filter(user => asInSource.has(user))
      // Users whose access changed later in the target keep their sessions and tokens of the target.
      const asInTarget = [...plan.newerInTarget, ...plan.changed.filter(user => !asInSource.has(user))]
      // Changes come first because they free e-mails that added users may have.
      if (changed.length > 0) await this.#change({ changed, newerInSource, emailMoves }, source)
      if (added.length > 0) await this.#run(statements.addUsers(added))
      const replaced = new Set(newerInSource)
      await this.#revoke(
        users.filter(user => !replaced.has(user)),
        source,
      )
      const fromSource = [...added, ...asInSource, ...unchanged]
      await this.#run(statements.recordCopied(idsOf([...fromSource, ...asInTarget])))
      const sessions = await this.#writeSessions(fromSource, asInTarget, source)
      const emailTokens = await this.#addEmailTokens(fromSource, source)
      await this.#run(statements.raiseLastRequests(users))
      return { ...plan, sessions, emailTokens }
    })
  }

  /**
   * Deletes users who were copied before and then deleted in the source, unless they were changed in the target since.
   * @returns the number of deleted users. @throws {CopyError} as {@link write}
   */
  delete(deleted: readonly DeletedUser[]): Promise<number> {
    return this.#transaction(async () => {
      await this.#run(statements.revokeSessionsOfDeleted(deleted))
      for (const table of this.#ownedTables.toReversed())
        await this.#run(tableStatements.deleteRowsOfDeleted(table, deleted))
      const ids = idsOf(await this.#run<WithId>(statements.deleteUsers(deleted)))
      if (ids.length > 0) {
        await this.#run(statements.eraseIpAddresses(ids))
        await this.#run(statements.notification(ids))
      }
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
   * Finds out how to write a feature's table.
   * @param columns of the source.
   * @throws {CopyError} when the target has no such column.
   */
  async describe(table: NamedTable, columns: readonly string[]): Promise<CopiedTable> {
    const found = await this.#run<tableStatements.ColumnType>(tableStatements.columnTypes(table))
    const byName = new Map(found.map(column => [column.name, column]))
    const types = columns.map(name => {
      const column = byName.get(name)
      if (column === undefined)
        throw new CopyError(
          `the target: the table ${table.name} has no column ${name}, which it has in the source: the migrations of its feature must create it on both engines`,
        )
      return column
    })
    return { ...table, columns: types }
  }

  /**
   * Deletes the rows of a feature's table that were copied before and that the source does not have any more. Running instances of the
   * target are notified of their owners, or of rows without one: a row may be an API key or an admin key.
   * @returns their number. @throws {CopyError} as {@link write}
   */
  async deleteMissing(table: CopiedTable, source: Source, size: number): Promise<number> {
    let deleted = 0
    let after: string | null = null
    for (;;) {
      const copied: readonly OwnedKey[] = await this.#run<OwnedKey>(
        tableStatements.copiedKeys(table, after, size),
      )
      const missing = source.missingKeys(table, copied)
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
   * @throws {CopyError} as {@link write}
   */
  writeRows(table: CopiedTable, rows: readonly SourceRow[]): Promise<WrittenRows> {
    const where = `the target: the table ${table.name}`
    return this.#transaction(async () => {
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
  async listFactors(): Promise<void> {
    if (this.#factors.length === 0) return
    await this.#transaction(async () => {
      const users = idsOf(await this.#run<WithId>(statements.listFactors(this.#factors)))
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

  /** @returns the users in the order of `changed`. */
  async #withLaterAccess(
    changed: readonly SourceUser[],
    targetUsers: readonly UserColumns[],
    source: Source,
  ): Promise<readonly SourceUser[]> {
    if (changed.length === 0) return []
    const byId = <Row extends WithId>(rows: readonly Row[]) => new Map(rows.map(row => [row.id, row]))
    const sourceAccess = byId(source.accessChanges(changed))
    const targetAccess = byId(await this.#run<AccessChanges>(statements.accessChanges(changed)))
    const targetUser = byId(targetUsers)
    return changed.map(user => {
      const { id } = user
      const row = targetUser.get(id)
      return row === undefined ? user : withLaterAccess(user, row, sourceAccess.get(id), targetAccess.get(id))
    })
  }

  async #change(
    { changed, newerInSource, emailMoves }: Pick<SlicePlan, 'changed' | 'newerInSource' | 'emailMoves'>,
    source: Source,
  ): Promise<void> {
    if (emailMoves.length > 0) await this.#run(statements.freeEmails(emailMoves))
    await this.#run(statements.changeUsers(changed))
    const ids = idsOf(newerInSource)
    const digests = source.emailTokenDigests(newerInSource)
    await this.#run(statements.removeMissing('sessions', 'all', ids, source.sessionIds(newerInSource)))
    await this.#run(statements.removeMissing('email_tokens', 'all', ids, digests))
    await this.#run(statements.notification(idsOf(changed)))
  }

  /** Removes copied sessions and e-mail tokens that the source has revoked or used since. */
  async #revoke(users: readonly SourceUser[], source: Source): Promise<void> {
    await this.#run(
      statements.removeMissing('email_tokens', 'copied', idsOf(users), source.emailTokenDigests(users)),
    )
    const affected = source.withEndedSessions(users)
    if (affected.length === 0) return
    const sessionIds = source.sessionIds(affected)
    const statement = statements.removeMissing('sessions', 'copied', idsOf(affected), sessionIds)
    const userIds = new Set(idsOf(await this.#run<WithId>(statement)))
    if (userIds.size > 0) await this.#run(statements.notification([...userIds]))
  }

  /**
   * Adds sessions of the users who are as in the source, and raises timestamps for the others too.
   * @returns the number of sessions that were added or have a later timestamp now.
   */
  async #writeSessions(
    fromSource: readonly SourceUser[],
    asInTarget: readonly SourceUser[],
    source: Source,
  ): Promise<number> {
    let written = 0
    for (const sessions of source.sessions(fromSource)) {
      written += (await this.#run(statements.addSessions(sessions))).length
      await this.#run(statements.recordCopied(idsOf(sessions)))
    }
    for (const sessions of source.sessions([...fromSource, ...asInTarget])) {
      written += (await this.#run(statements.raiseSessions(sessions))).length
    }
    return written
  }

  async #addEmailTokens(users: readonly SourceUser[], source: Source): Promise<number> {
    const tokens = source.emailTokens(users)
    if (tokens.length === 0) return 0
    const added = await this.#run(statements.addEmailTokens(tokens))
    await this.#run(statements.recordCopied(tokens.map(({ digest }) => digest)))
    return added.length
  }

  /** @param where for the message of an error. */
  async #run<Row extends object>(
    { values, ...statement }: Statement,
    where?: string,
  ): Promise<readonly Row[]> {
    const work = () => this.#client.query<Row>({ ...statement, values: [...values] })
    const { rows } = await attempt(work, where)
    return rows
  }
}
