import { type Actor, type AuditEvent, newEvent } from '../audit-log/event.ts'
import type { UserCache } from '../auth/user-cache.ts'
import { ERRORS, type ErrorBody, errorBody, ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import { dummyHash } from '../passwords/formats.ts'
import type { Position } from '../users/listing.ts'
import type { User } from '../users/user.ts'
import type { MaybePromise } from '../users/user-store.ts'

/** A user with all that another service needs to go on with. */
export type PortableUser = User & { readonly passwordHash: string }

export type Imported =
  | { readonly status: 'created' }
  /** There is a user of that e-mail already, with this id; nothing has changed. */
  | { readonly status: 'exists'; readonly id: string }
  /** The id belongs to a user of another e-mail. */
  | { readonly status: 'idTaken' }

/** What moving users in and out in great number needs of a store. */
export interface BulkUserStore {
  /**
   * Adds users, each who can be: of two who come at once with one e-mail, here or as a sign-up, one wins.
   * @param events one for each user, in their order: kept for those who are added.
   * @returns what came of each, in their order, once it is on disk.
   */
  importUsers(users: readonly PortableUser[], events: readonly AuditEvent[]): Promise<readonly Imported[]>
  /** Users in order of creation, `after` a position: so many that nobody else waits for long. Empty at the end. */
  exportUsers(after: Position | null): MaybePromise<readonly PortableUser[]>
}

export interface ExportsDeps {
  readonly store: BulkUserStore
  readonly userCache: UserCache
}

export class Exports {
  readonly #parts: ExportsDeps

  constructor(parts: ExportsDeps) {
    this.#parts = parts
  }

  /**
   * Every user in order of creation, page by page: whoever is there from the beginning to the end, once, as they are when
   * their page is read.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  async *pages(): AsyncGenerator<readonly PortableUser[]> {
    const { store, userCache } = this.#parts
    let after: Position | null = null
    for (;;) {
      const users: readonly PortableUser[] = await store.exportUsers(after)
      const last = users.at(-1)
      if (last === undefined) return
      yield users.map(user => userCache.withLatest(user))
      after = { key: last.createdAt, id: last.id }
    }
  }
}

/** Users from elsewhere, with ids, timestamps and hashes as they are there. */

/** A user as an export writes one. Timestamps are ISO 8601. */
export interface UserRecord {
  /** In canonical form. */
  readonly email: string
  /** Without it no password is right until one is set. */
  readonly passwordHash?: string
  readonly firstName?: string | null
  readonly lastName?: string | null
  readonly emailVerified?: boolean
  readonly disabled?: boolean
  readonly id?: string
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly lastRequestAt?: string | null
}

type Errors = Readonly<Record<string, readonly string[]>>

/** A line of what is imported: a user, or why it is none. */
export type UserLine = { readonly line: number } & (
  | { readonly value: UserRecord; readonly errors?: undefined }
  | { readonly errors: Errors }
)

export interface Counts {
  created: number
  exists: number
  failed: number
}

export type ImportResult =
  | { readonly line: number; readonly status: 'created' | 'exists'; readonly id: string }
  | { readonly line: number; readonly status: 'failed'; readonly errors: Errors }
  | ({ readonly status: 'finished' } & Counts)
  /** Of the lines behind the last one that is told of, nothing is known: to be imported again. */
  | ({ readonly status: 'stopped'; readonly error: ServiceError } & Counts)

const ID_TAKEN: ErrorBody = errorBody('id', ERRORS.emailTaken.message)

const toUser = (record: UserRecord, now: number): PortableUser => {
  const createdAt = record.createdAt === undefined ? now : Date.parse(record.createdAt)
  return {
    id: record.id ?? newId(),
    email: record.email,
    passwordHash: record.passwordHash ?? dummyHash(),
    firstName: record.firstName ?? null,
    lastName: record.lastName ?? null,
    emailVerified: record.emailVerified ?? false,
    disabled: record.disabled ?? false,
    createdAt,
    updatedAt: record.updatedAt === undefined ? createdAt : Date.parse(record.updatedAt),
    lastRequestAt: record.lastRequestAt ? Date.parse(record.lastRequestAt) : null,
    version: 1,
  }
}

export interface ImportsDeps {
  readonly store: BulkUserStore
  readonly clock: () => number
}

export class Imports {
  readonly #parts: ImportsDeps

  constructor(parts: ImportsDeps) {
    this.#parts = parts
  }

  /**
   * Imports lines, a batch at a time. What came of a batch is told once it is on disk; the last result says that it has
   * finished, or why it has stopped early. It can be repeated: whoever is there already is left alone.
   */
  async *run(
    batches: AsyncIterable<readonly UserLine[]>,
    actor: Actor,
  ): AsyncGenerator<readonly ImportResult[]> {
    const counts: Counts = { created: 0, exists: 0, failed: 0 }
    try {
      for await (const lines of batches) {
        const results = await this.#import(lines, actor)
        for (const { status } of results) counts[status] += 1
        yield results
      }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      yield [{ status: 'stopped', ...counts, error }]
      return
    }
    yield [{ status: 'finished', ...counts }]
  }

  async #import(lines: readonly UserLine[], actor: Actor) {
    const now = this.#parts.clock()
    const users = lines.flatMap(line => (line.errors === undefined ? [toUser(line.value, now)] : []))
    const events = users.map(({ id }) => newEvent('user.created', actor, id, now))
    const imported = users.length === 0 ? [] : await this.#parts.store.importUsers(users, events)
    let next = 0
    return lines.map(({ line, errors }) => {
      if (errors !== undefined) return { line, status: 'failed' as const, errors }
      const [user, outcome] = [users[next] as PortableUser, imported[next] as Imported]
      next += 1
      if (outcome.status === 'idTaken') return { line, status: 'failed' as const, ...ID_TAKEN }
      const id = outcome.status === 'exists' ? outcome.id : user.id
      return { line, status: outcome.status, id }
    })
  }
}
