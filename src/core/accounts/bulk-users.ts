/** Import and export of users in bulk. */

import { ERRORS, type ErrorBody, errorBody, type FieldErrors, ServiceError } from '#base/errors'
import { newId } from '#base/ids'
import { type Actor, newEvent } from '../audit-log/event.ts'
import { missingScopes } from '../auth/admin-key.ts'
import type { BulkUserStore, Imported } from '../store/store.ts'
import { type Factor, NO_FACTORS } from '../users/factors.ts'
import type { FieldValues } from '../users/fields.ts'
import type { Position, SignInTables } from '../users/listing.ts'
import type { UserWithHash } from '../users/user.ts'
import { newUser } from './account-creation.ts'
import type { BulkFactor, BulkProperty, FactorCredentials, FactorRow, FactorRows } from './bulk-factors.ts'
import { type ActingKey, EVERY_SCOPE, type ProtectedRole } from './protected-role.ts'

export type ExportedUser = UserWithHash & {
  readonly credentials?: FactorCredentials
  /** By the name of the {@link BulkProperty}. */
  readonly properties?: Readonly<Record<string, unknown>>
}

export interface ExportContents {
  /** Also the credentials of factors. */
  readonly withHash: boolean
}

export interface ExportsDeps {
  readonly store: BulkUserStore
  readonly signInTables: SignInTables
  readonly factors: readonly BulkFactor[]
  readonly properties: readonly BulkProperty[]
}

export class Exports {
  readonly #deps: ExportsDeps

  constructor(deps: ExportsDeps) {
    this.#deps = deps
  }

  /**
   * Pages of all users in order of creation. A user who exists throughout the export appears once, in the state when the page is read.
   * @param key users lack properties whose scope it does not have. @throws {ServiceError} those of {@link BulkFactor.credentialsOf}
   */
  async *pages(
    { withHash }: ExportContents,
    key: ActingKey = EVERY_SCOPE,
  ): AsyncGenerator<readonly ExportedUser[]> {
    const { store, signInTables } = this.#deps
    const properties = this.#deps.properties.filter(
      ({ readScope }) => missingScopes(key, [readScope]).length === 0,
    )
    let after: Position | null = null
    for (;;) {
      const users: readonly UserWithHash[] = await store.exportUsers(after, signInTables)
      const last = users.at(-1)
      if (last === undefined) return
      const exported = withHash ? await this.#withCredentials(users) : users
      yield await this.#withProperties(exported, properties)
      after = { key: last.createdAt, id: last.id }
    }
  }

  async #withProperties(
    users: readonly ExportedUser[],
    properties: readonly BulkProperty[],
  ): Promise<readonly ExportedUser[]> {
    const found: { readonly name: string; readonly of: ReadonlyMap<string, unknown> }[] = []
    for (const property of properties) found.push({ name: property.name, of: await property.valuesOf(users) })
    return users.map(user => {
      const held = found.filter(({ of }) => of.has(user.id))
      if (held.length === 0) return user
      return { ...user, properties: Object.fromEntries(held.map(({ name, of }) => [name, of.get(user.id)])) }
    })
  }

  /** A factor that was removed since the users were read is not listed: every listed factor has its credentials. */
  async #withCredentials(users: readonly UserWithHash[]): Promise<readonly ExportedUser[]> {
    const found: { readonly factor: Factor | null; readonly of: ReadonlyMap<string, FactorCredentials> }[] =
      []
    for (const kind of this.#deps.factors) {
      const { factor } = kind
      const having = factor === null ? users : users.filter(({ factors }) => factors.includes(factor))
      found.push({ factor, of: having.length === 0 ? new Map() : await kind.credentialsOf(having) })
    }
    return users.map(user => {
      const kinds = found.filter(({ of }) => of.has(user.id))
      if (kinds.length === 0 && user.factors.length === 0) return user
      const factors = user.factors.filter(each => kinds.some(({ factor }) => factor === each))
      const parts = kinds.map(({ of }) => of.get(user.id))
      return { ...user, factors, ...(parts.length > 0 && { credentials: Object.assign({}, ...parts) }) }
    })
  }
}

/** A user as an export writes one: ids, timestamps and hashes of the other service. Timestamps are ISO 8601. */
export interface UserRecord extends Partial<FieldValues> {
  /** In canonical form. */
  readonly email: string
  /** Without it, the user has no password: a reset sets the first one. */
  readonly passwordHash?: string
  readonly emailVerified?: boolean
  readonly disabled?: boolean
  readonly id?: string
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly lastRequestAt?: string | null
  readonly credentials?: FactorCredentials
  /** What the export lists. The factors of the new user follow from the credentials. */
  readonly factors?: readonly Factor[]
}

/** A line of an import: a user, or what is wrong with it. */
export type UserLine = { readonly line: number } & (
  | { readonly value: UserRecord; readonly errors?: undefined }
  | { readonly errors: FieldErrors }
)

export interface Counts {
  created: number
  exists: number
  failed: number
}

type LineResult =
  | { readonly line: number; readonly status: 'created' | 'exists'; readonly id: string }
  | { readonly line: number; readonly status: 'failed'; readonly errors: FieldErrors }

export type ImportResult =
  | LineResult
  | ({ readonly status: 'finished' } & Counts)
  /** Lines without a result have to be imported again. */
  | ({ readonly status: 'stopped'; readonly error: ServiceError } & Counts)

const ID_TAKEN: ErrorBody = errorBody('id', ERRORS.emailTaken.message)

const toUser = (record: UserRecord, factors: readonly Factor[], now: number): UserWithHash => {
  const { passwordHash = null, createdAt, updatedAt, lastRequestAt, ...account } = record
  const user = newUser(account, passwordHash, createdAt === undefined ? now : Date.parse(createdAt))
  return {
    ...user,
    factors,
    updatedAt: updatedAt === undefined ? user.createdAt : Date.parse(updatedAt),
    lastRequestAt: lastRequestAt ? Date.parse(lastRequestAt) : null,
  }
}

interface GivenProperty {
  readonly property: BulkProperty
  readonly value: unknown
}

type Prepared =
  | {
      readonly user: UserWithHash
      readonly rows: readonly FactorRow[]
      readonly properties: readonly GivenProperty[]
      readonly errors?: undefined
    }
  | { readonly errors: FieldErrors }

const NO_ROWS: FactorRows = { rows: [], errors: {} }

export interface ImportsDeps {
  readonly store: BulkUserStore
  readonly factors: readonly BulkFactor[]
  readonly properties: readonly BulkProperty[]
  /** `null`: there is none. */
  readonly protectedRole: ProtectedRole | null
  readonly clock: () => number
}

export class Imports {
  readonly #deps: ImportsDeps

  constructor(deps: ImportsDeps) {
    this.#deps = deps
  }

  /**
   * Yields the results of each batch when it is on disk; the last one is `finished` or `stopped`. A repeated import changes no existing user.
   * @param key lines with a property fail unless it has the property's scope, and those with the protected role, unless it has all of its.
   */
  async *run(
    batches: AsyncIterable<readonly UserLine[]>,
    actor: Actor,
    key: ActingKey = EVERY_SCOPE,
  ): AsyncGenerator<readonly ImportResult[]> {
    const counts: Counts = { created: 0, exists: 0, failed: 0 }
    try {
      for await (const lines of batches) {
        const results = await this.#import(lines, actor, key)
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

  async #import(lines: readonly UserLine[], actor: Actor, key: ActingKey) {
    const now = this.#deps.clock()
    const prepared = await Promise.all(
      lines.map(line => (line.errors === undefined ? this.#prepare(line.value, now, key) : line)),
    )
    const added = prepared.filter(line => line.errors === undefined)
    const users = added.map(({ user }) => user)
    const events = users.map(({ id }) => newEvent('user.created', actor, id, now))
    const rows = added.flatMap((line, user) => line.rows.map(({ ifTaken: _, ...row }) => ({ ...row, user })))
    const imported = users.length === 0 ? [] : await this.#deps.store.importUsers(users, events, rows)
    let next = 0
    const results = lines.map(({ line }, index) => {
      const given = prepared[index] as Prepared
      if (given.errors !== undefined) return { line, status: 'failed' as const, errors: given.errors }
      const outcome = imported[next] as Imported
      next += 1
      if (outcome.status === 'idTaken') return { line, status: 'failed' as const, ...ID_TAKEN }
      if (outcome.status === 'rowsTaken') {
        const taken: FieldErrors = Object.assign({}, ...outcome.rows.map(row => given.rows[row]?.ifTaken))
        return { line, status: 'failed' as const, errors: taken }
      }
      const id = outcome.status === 'exists' ? outcome.id : given.user.id
      return { line, status: outcome.status, id }
    })
    return this.#addProperties(results, prepared, actor)
  }

  /** A user with another id than the line is somebody else. */
  async #addProperties(
    results: readonly LineResult[],
    prepared: readonly Prepared[],
    actor: Actor,
  ): Promise<readonly LineResult[]> {
    const completed: LineResult[] = []
    for (const [index, result] of results.entries()) {
      const given = prepared[index] as Prepared
      const isSame = result.status !== 'failed' && given.errors === undefined && result.id === given.user.id
      const errors: Record<string, readonly string[]> = {}
      if (isSame)
        for (const { property, value } of given.properties)
          Object.assign(errors, await property.add(result.id, value, actor))
      const { line } = result
      completed.push(Object.keys(errors).length === 0 ? result : { line, status: 'failed', errors })
    }
    return completed
  }

  #split(record: UserRecord): { record: UserRecord; properties: readonly GivenProperty[] } {
    const { properties } = this.#deps
    const given = Object.entries(record)
    const isOfFeature = (name: string) => properties.some(property => property.name === name)
    return {
      record: Object.fromEntries(given.filter(([name]) => !isOfFeature(name))) as unknown as UserRecord,
      properties: properties.flatMap(property =>
        given.flatMap(([name, value]) => (name === property.name ? [{ property, value }] : [])),
      ),
    }
  }

  async #prepare(whole: UserRecord, now: number, key: ActingKey): Promise<Prepared> {
    const { record: own, properties } = this.#split(whole)
    const forbidden = properties.flatMap(({ property: { name, scope } }) =>
      missingScopes(key, [scope]).map((missing): [string, string[]] => [
        name,
        [`needs an admin key with the scope ${missing}`],
      ]),
    )
    const { protectedRole } = this.#deps
    if (protectedRole !== null && own.roles?.includes(protectedRole.role))
      for (const missing of missingScopes(key, protectedRole.scopes))
        forbidden.push(['roles', [`needs an admin key with the scope ${missing}`]])
    if (forbidden.length > 0) return { errors: Object.fromEntries(forbidden) }
    const { credentials, factors: listed = NO_FACTORS, ...record } = own
    const id = record.id ?? newId()
    const user = { id, keepsId: record.id !== undefined }
    const parts = await Promise.all(
      this.#deps.factors.map(async kind => ({
        factor: kind.factor,
        ...(credentials === undefined ? NO_ROWS : await kind.toRows(user, credentials, now)),
      })),
    )
    const factors = parts.flatMap(({ factor, rows }) =>
      factor === null || rows.length === 0 ? [] : [factor],
    )
    const checked = await Promise.all(properties.map(({ property, value }) => property.check(value)))
    const errors: FieldErrors = Object.assign({}, ...parts.map(part => part.errors), ...checked)
    if (Object.keys(errors).length > 0) return { errors }
    // Otherwise the password alone would sign in users who have protected their account elsewhere.
    const lost = record.passwordHash === undefined ? [] : listed.filter(factor => !factors.includes(factor))
    if (lost.length > 0)
      return { errors: { factors: lost.map(factor => `must not have ${factor} without its credentials`) } }
    return {
      user: toUser({ ...record, id }, factors, now),
      rows: parts.flatMap(({ rows }) => rows),
      properties,
    }
  }
}
