/** The shared store as a copy writes it: a slice of users, with all that belongs to them, is one transaction. */

import pg from 'pg'
import { connectionOptions, reason, type Statement } from '../postgres/database.ts'
import { Hosts } from '../postgres/hosts.ts'
import { migrate } from '../postgres/migrate.ts'
import type { UserColumns } from '../rows.ts'
import { type AccessChanges, CopyError, type Plan, plan, type SourceUser, withLaterAccess } from './plan.ts'
import type { DeletedUser, Source, SourceEvent } from './source.ts'
import * as statements from './statements.ts'

/** Milliseconds that a statement of some thousand rows may take, and until the server is given up. */
const STATEMENT_TIMEOUT = 120_000
const ANSWER_TIMEOUT = 130_000

/**
 * Nobody else adds or changes users until the slice is committed: what was found of them stays true. Reads, sign-ins and
 * last requests go on.
 */
const LOCK = { text: 'LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE', values: [] }

export interface Written extends Plan {
  /** Sessions that were added or have a later timestamp now. */
  readonly sessions: number
  readonly emailTokens: number
}

const attempt = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    throw new CopyError(`the target: ${reason(error)}`, { cause: error })
  }
}

interface Identified {
  readonly id: string
}

const idsOf = (rows: readonly Identified[]): string[] => rows.map(({ id }) => id)

export class Target {
  readonly #client: pg.Client

  private constructor(client: pg.Client) {
    this.#client = client
  }

  /** Connects to the database that `url` names, which is brought up to date. @throws {CopyError} */
  static open(url: string): Promise<Target> {
    return attempt(async () => {
      const hosts = await Hosts.open(url)
      await migrate(hosts.url)
      const client = new pg.Client({
        ...connectionOptions(hosts.url),
        statement_timeout: STATEMENT_TIMEOUT,
        query_timeout: ANSWER_TIMEOUT,
      })
      // A connection that breaks is told by the statement that meets it.
      client.on('error', () => undefined)
      await client.connect()
      const target = new Target(client)
      await target.#run(statements.CREATE_COPIED_ROWS)
      await target.#run(statements.CREATE_COPIED_EVENTS)
      return target
    })
  }

  /**
   * Writes a slice of users with their sessions and e-mail tokens, all of it or nothing. What was copied before and is not
   * there any more was deleted or revoked in the target: it does not come back.
   * @throws {CopyError} after which the target is of no more use.
   */
  write(users: readonly SourceUser[], source: Source): Promise<Written> {
    return this.#transaction(async () => {
      const copied = new Set(idsOf(await this.#run<Identified>(statements.copiedBefore(users))))
      const held = await this.#run<UserColumns>(statements.held(users))
      const planned = plan(users, held, copied)
      const { added, unchanged, moving } = planned
      const changed = await this.#withLaterAccess(planned.changed, held, source)
      const asInSource = new Set(planned.changed.filter((user, index) => changed[index] === user))
      const later = planned.later.filter(user => asInSource.has(user))
      // Their sessions and tokens are those of the target, as are those of users who changed later there.
      const kept = [...planned.kept, ...planned.changed.filter(user => !asInSource.has(user))]
      // First, for it frees e-mails that those who are added may have.
      if (changed.length > 0) await this.#change({ changed, later, moving }, source)
      if (added.length > 0) await this.#run(statements.addUsers(added))
      const made = new Set(later)
      const others = users.filter(user => !made.has(user))
      await this.#revoke(others, source)
      const present = [...added, ...asInSource, ...unchanged]
      await this.#run(statements.noteCopied(idsOf([...present, ...kept])))
      const sessions = await this.#writeSessions(present, kept, source)
      const emailTokens = await this.#addEmailTokens(present, source)
      await this.#run(statements.noteUsers(users))
      return { ...planned, sessions, emailTokens }
    })
  }

  /**
   * Deletes users who were deleted in the source after they had been copied, unless they were changed here since.
   * @returns how many. @throws {CopyError} as {@link write}
   */
  delete(deleted: readonly DeletedUser[]): Promise<number> {
    return this.#transaction(async () => {
      await this.#run(statements.endSessionsOfDeleted(deleted))
      const ids = idsOf(await this.#run<Identified>(statements.deleteUsers(deleted)))
      if (ids.length > 0) {
        await this.#run(statements.eraseAddresses(ids))
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

  /** Adds a slice of the source's audit log. @returns how many were added. @throws {CopyError} as {@link write} */
  addEvents(source: string, events: readonly SourceEvent[]): Promise<number> {
    return this.#transaction(async () => {
      const added = await this.#run(statements.addEvents(events))
      await this.#run(statements.noteCopiedEvents(source, events.at(-1)?.position ?? 0))
      return added.length
    })
  }

  /** What was not committed is rolled back. */
  async close(): Promise<void> {
    await this.#client.end()
  }

  async #transaction<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#run({ text: 'BEGIN', values: [] })
    await this.#run(LOCK)
    const result = await work()
    await this.#run({ text: 'COMMIT', values: [] })
    return result
  }

  /** In the order of `changed`. */
  async #withLaterAccess(
    changed: readonly SourceUser[],
    held: readonly UserColumns[],
    source: Source,
  ): Promise<readonly SourceUser[]> {
    if (changed.length === 0) return []
    const byId = <Row extends Identified>(rows: readonly Row[]) => new Map(rows.map(row => [row.id, row]))
    const ours = byId(source.accessChanges(changed))
    const theirs = byId(await this.#run<AccessChanges>(statements.accessChanges(changed)))
    const inTarget = byId(held)
    return changed.map(user => {
      const row = inTarget.get(user.id)
      return row === undefined ? user : withLaterAccess(user, row, ours.get(user.id), theirs.get(user.id))
    })
  }

  async #change(
    { changed, later, moving }: Pick<Plan, 'changed' | 'later' | 'moving'>,
    source: Source,
  ): Promise<void> {
    if (moving.length > 0) await this.#run(statements.freeEmails(moving))
    await this.#run(statements.changeUsers(changed))
    const ids = idsOf(later)
    await this.#run(statements.removeMissing('sessions', 'all', ids, source.sessionIds(later)))
    await this.#run(statements.removeMissing('email_tokens', 'all', ids, source.emailTokenDigests(later)))
    await this.#run(statements.notification(idsOf(changed)))
  }

  /** What the source has revoked since of users who do not become as they are there, or have only ended a session. */
  async #revoke(users: readonly SourceUser[], source: Source): Promise<void> {
    await this.#run(
      statements.removeMissing('email_tokens', 'copied', idsOf(users), source.emailTokenDigests(users)),
    )
    const some = source.withEndedSessions(users)
    if (some.length === 0) return
    const statement = statements.removeMissing('sessions', 'copied', idsOf(some), source.sessionIds(some))
    const ids = new Set(idsOf(await this.#run<Identified>(statement)))
    if (ids.size > 0) await this.#run(statements.notification([...ids]))
  }

  /** @returns how many were added or have a later timestamp now. */
  async #writeSessions(
    present: readonly SourceUser[],
    kept: readonly SourceUser[],
    source: Source,
  ): Promise<number> {
    let written = 0
    for (const sessions of source.sessions(present)) {
      written += (await this.#run(statements.addSessions(sessions))).length
      await this.#run(statements.noteCopied(idsOf(sessions)))
    }
    for (const sessions of source.sessions([...present, ...kept])) {
      written += (await this.#run(statements.raiseSessions(sessions))).length
    }
    return written
  }

  async #addEmailTokens(users: readonly SourceUser[], source: Source): Promise<number> {
    const tokens = source.emailTokens(users)
    if (tokens.length === 0) return 0
    const added = await this.#run(statements.addEmailTokens(tokens))
    await this.#run(statements.noteCopied(tokens.map(({ digest }) => digest)))
    return added.length
  }

  async #run<Row extends object>({ values, ...statement }: Statement): Promise<readonly Row[]> {
    const { rows } = await attempt(() => this.#client.query<Row>({ ...statement, values: [...values] }))
    return rows
  }
}
