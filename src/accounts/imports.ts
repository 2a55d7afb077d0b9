/** Users from elsewhere, with ids, timestamps and hashes as they are there. */

import { type Actor, newEvent } from '../audit-log/event.ts'
import { ERRORS, type ErrorBody, errorBody, ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import { dummyHash } from '../passwords/argon2.ts'
import type { BulkUserStore, Imported, PortableUser } from './bulk-user-store.ts'

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
