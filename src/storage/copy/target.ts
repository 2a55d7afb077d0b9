/** The shared store as a copy writes it: a slice of users, with all that belongs to them, is one transaction. */
import pg from 'pg'
import { notification } from '../postgres/change-feed.ts'
import { connectionOptions, reason, type Statement } from '../postgres/database.ts'
import { Hosts } from '../postgres/hosts.ts'
import { migrate } from '../postgres/migrate.ts'
import type { UserColumns } from '../rows.ts'
import { CopyFault } from './fault.ts'
import { type Plan, plan, type SourceUser } from './plan.ts'
import type { SourceSession } from './source.ts'
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
  /** Sessions that were added or have a later moment now. */
  readonly sessions: number
}

const attempt = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    throw new CopyFault(`the target: ${reason(error)}`, { cause: error })
  }
}

export class Target {
  readonly #client: pg.Client

  private constructor(client: pg.Client) {
    this.#client = client
  }

  /** Connects to the database that `url` names, which is brought up to date. @throws {CopyFault} */
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
      return new Target(client)
    })
  }

  /**
   * Writes a slice of users, all of it or nothing.
   * @param sessionsOf the source's sessions of some of them.
   * @throws {CopyFault} after which the target is of no more use.
   */
  async write(
    users: readonly SourceUser[],
    sessionsOf: (users: readonly SourceUser[]) => Iterable<readonly SourceSession[]>,
  ): Promise<Written> {
    await this.#run({ text: 'BEGIN', values: [] })
    await this.#run(LOCK)
    const planned = plan(users, await this.#run<UserColumns>(statements.held(users)))
    const { added, changed, unchanged, kept } = planned
    // First, for it frees e-mails that those who are added may have.
    if (changed.length > 0) await this.#change(planned)
    if (added.length > 0) await this.#run(statements.addUsers(added))
    let sessions = 0
    for (const some of sessionsOf([...added, ...changed, ...unchanged])) {
      sessions += (await this.#run(statements.addSessions(some))).length
    }
    for (const some of sessionsOf(kept)) {
      sessions += (await this.#run(statements.raiseSessions(some))).length
    }
    await this.#run(statements.noteUsers(users))
    await this.#run({ text: 'COMMIT', values: [] })
    return { ...planned, sessions }
  }

  /** What was not committed is taken back. */
  async close(): Promise<void> {
    await this.#client.end()
  }

  async #change({ changed, moving }: Plan): Promise<void> {
    if (moving.length > 0) await this.#run(statements.freeEmails(moving))
    await this.#run(statements.changeUsers(changed))
    await this.#run(statements.endSessions(changed))
    const ids = changed.map(({ id }) => id)
    await this.#run(notification(ids))
  }

  async #run<Row extends object>({ values, ...statement }: Statement): Promise<readonly Row[]> {
    const { rows } = await attempt(() => this.#client.query<Row>({ ...statement, values: [...values] }))
    return rows
  }
}
