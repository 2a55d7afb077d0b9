/** Import and export of users in bulk. */
import { type Actor, newEvent } from '../audit-log/event.ts'
import { ERRORS, type ErrorBody, errorBody, ServiceError } from '../errors.ts'
import { dummyHash } from '../passwords/formats.ts'
import type { Position } from '../users/listing.ts'
import type { JsonObject } from '../users/metadata.ts'
import type { UserWithHash } from '../users/user.ts'
import { newUser } from './account-creation.ts'
import type { BulkUserStore, Imported } from './bulk-user-store.ts'

export interface ExportsDeps {
  readonly store: BulkUserStore
}

export class Exports {
  readonly #deps: ExportsDeps

  constructor(deps: ExportsDeps) {
    this.#deps = deps
  }

  /**
   * Pages of all users in order of creation. A user who exists throughout the export appears exactly once, in the state at
   * the time the page is read.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  async *pages(): AsyncGenerator<readonly UserWithHash[]> {
    const { store } = this.#deps
    let after: Position | null = null
    for (;;) {
      const users: readonly UserWithHash[] = await store.exportUsers(after)
      const last = users.at(-1)
      if (last === undefined) return
      yield users
      after = { key: last.createdAt, id: last.id }
    }
  }
}

/** A user as an export writes one: ids, timestamps and hashes of the other service. Timestamps are ISO 8601. */
export interface UserRecord {
  /** In canonical form. */
  readonly email: string
  /** Without it, the user signs in after a password reset. */
  readonly passwordHash?: string
  readonly firstName?: string | null
  readonly lastName?: string | null
  readonly emailVerified?: boolean
  readonly disabled?: boolean
  readonly roles?: readonly string[]
  readonly userMetadata?: JsonObject
  readonly appMetadata?: JsonObject
  readonly id?: string
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly lastRequestAt?: string | null
}

type Errors = Readonly<Record<string, readonly string[]>>

/** A line of an import: a user, or what is wrong with it. */
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
  /** Lines without a result have to be imported again. */
  | ({ readonly status: 'stopped'; readonly error: ServiceError } & Counts)

const ID_TAKEN: ErrorBody = errorBody('id', ERRORS.emailTaken.message)

const toUser = (record: UserRecord, now: number): UserWithHash => {
  const { passwordHash = dummyHash(), createdAt, updatedAt, lastRequestAt, ...account } = record
  const user = newUser(account, createdAt === undefined ? now : Date.parse(createdAt))
  return {
    ...user,
    passwordHash,
    updatedAt: updatedAt === undefined ? user.createdAt : Date.parse(updatedAt),
    lastRequestAt: lastRequestAt ? Date.parse(lastRequestAt) : null,
  }
}

export interface ImportsDeps {
  readonly store: BulkUserStore
  readonly clock: () => number
}

export class Imports {
  readonly #deps: ImportsDeps

  constructor(deps: ImportsDeps) {
    this.#deps = deps
  }

  /**
   * Imports lines in batches and yields the results of each batch when it is on disk. The last result is `finished` or
   * `stopped`. An import can be repeated: existing users do not change.
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
    const now = this.#deps.clock()
    const users = lines.flatMap(line => (line.errors === undefined ? [toUser(line.value, now)] : []))
    const events = users.map(({ id }) => newEvent('user.created', actor, id, now))
    const imported = users.length === 0 ? [] : await this.#deps.store.importUsers(users, events)
    let next = 0
    return lines.map(({ line, errors }) => {
      if (errors !== undefined) return { line, status: 'failed' as const, errors }
      const [user, outcome] = [users[next] as UserWithHash, imported[next] as Imported]
      next += 1
      if (outcome.status === 'idTaken') return { line, status: 'failed' as const, ...ID_TAKEN }
      const id = outcome.status === 'exists' ? outcome.id : user.id
      return { line, status: outcome.status, id }
    })
  }
}
