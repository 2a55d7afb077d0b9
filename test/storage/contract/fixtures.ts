/** Data of the contract's tests. */

import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { firstIdAt } from '#base/ids'
import { AGING_TABLES, type CleanedTable } from '#core/accounts/clean-up'
import type { EmailToken } from '#core/accounts/email-token'
import { type AuditEvent, type EventType, newEvent } from '#core/audit-log/event'
import type { UserLastRequests } from '#core/auth/last-requests'
import type { Session } from '#core/auth/session'
import type { AccountProof, Storage, VerifiedState } from '#core/store/store'
import { NO_FACTORS } from '#core/users/factors'
import { newFields } from '#core/users/fields'
import type { NewUser, User } from '#core/users/user'
import { freshEmail } from '../../support/build.ts'

/**
 * Opens the store of a test, empty at first. Called again with the same test, it opens another instance on the same data.
 * All of it is closed and removed with the test.
 */
export type Open = (t: Test) => Promise<Storage>

/** A part of the contract. */
export type Part = (t: Test, open: Open) => Promise<void>

/** 2026-01-01, in milliseconds since the epoch. */
export const NOW = Date.UTC(2026, 0, 1)
export const DAY = 86_400_000

/** A user with a password. */
export type TestUser = NewUser & { readonly passwordHash: string }

export const newUser = (fields: Partial<TestUser> = {}): TestUser => ({
  id: uuidv7(),
  email: freshEmail(),
  passwordHash: `$argon2id$${randomBytes(8).toString('hex')}`,
  ...newFields({ firstName: 'Ada', lastName: 'Lovelace' }),
  emailVerified: false,
  disabled: false,
  createdAt: NOW,
  updatedAt: NOW,
  ...fields,
})

export const sessionOf = (userId: string, fields: Partial<Session> = {}): Session => ({
  id: uuidv7(),
  userId,
  createdAt: NOW,
  expiresAt: NOW + 30 * DAY,
  lastRequestAt: NOW,
  ip: '192.0.2.1',
  userAgent: 'a client',
  impersonatedBy: null,
  method: 'password',
  amr: ['pwd'],
  authenticatedAt: NOW,
  ...fields,
})

/** Last requests of users, as the store takes them. */
export const userRequests = (
  requests: readonly { readonly key: number; readonly at: number }[],
): UserLastRequests => Float64Array.from(requests.flatMap(({ key, at }) => [key, at]))

/** What a sign-in with the password has verified of a user without factors. */
export const verifiedBy = (passwordHash: string): VerifiedState => ({ passwordHash, factors: NO_FACTORS })

/** A session in which the password was verified. */
export const actingIn = ({ id }: Pick<Session, 'id'>, passwordHash: string) => ({
  session: { id, needsCode: false },
  passwordHash,
})

/** An event of a change that users make to themselves. */
export const eventOf = (userId: string, at = NOW, type: EventType = 'user.changed'): AuditEvent =>
  newEvent(type, { type: 'user', id: userId, ip: '192.0.2.1' }, userId, at)

/** The user as the store should return it. */
export const asStored = ({ passwordHash, ...user }: NewUser, lastRequestAt: number | null = null): User => ({
  ...user,
  hasPassword: passwordHash !== null,
  factors: NO_FACTORS,
  lastRequestAt,
  version: 1,
})

export interface Added {
  readonly user: TestUser
  readonly session: Session
  /** The store's own key of the user. */
  readonly userKey: number
}

/** Adds a user with a first session. */
export const add = async (storage: Storage, fields: Partial<TestUser> = {}): Promise<Added> => {
  const user = newUser(fields)
  const session = sessionOf(user.id)
  if (!(await storage.accounts.addUser(user, eventOf(user.id), { session: session })))
    throw new Error(`${user.email} is taken`)
  const userKey = (await storage.sessions.find(session.id))?.userKey ?? Number.NaN
  return { user, session, userKey }
}

/** Concurrent calls: with more, some might wait for a connection longer than a store allows. */
const AT_ONCE = 200

/** The outcomes of an operation on each item, so many at a time. */
export const forEach = async <Item, Result>(
  items: readonly Item[],
  operation: (item: Item) => Result | Promise<Result>,
): Promise<Result[]> => {
  const results: Result[] = []
  for (let from = 0; from < items.length; from += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(from, from + AT_ONCE).map(operation))))
  }
  return results
}

/** Adds users without sessions: thousands in a tenth of the time of {@link add}. */
export const addUsers = async (
  storage: Storage,
  people: readonly Partial<TestUser>[],
): Promise<TestUser[]> => {
  const users = people.map(fields => newUser(fields))
  for (let from = 0; from < users.length; from += AT_ONCE) {
    const imported = users
      .slice(from, from + AT_ONCE)
      .map(user => ({ ...user, hasPassword: true, factors: NO_FACTORS, lastRequestAt: null, version: 1 }))
    const events = imported.map(({ id }) => eventOf(id, NOW, 'user.created'))
    const results = await storage.bulkUsers.importUsers(imported, events, [])
    if (results.some(({ status }) => status !== 'created')) throw new Error('an e-mail is taken')
  }
  return users
}

/** docs/design.md, "Storage": milliseconds within which another instance is notified. */
export const NOTIFICATION_LIMIT = 1_000

/** Calls `listener` with the id of a changed user, or `null` if unknown. */
export const onChange = (storage: Storage, listener: (userId: string | null) => void): void =>
  storage.subscribe({
    invalidate: listener,
    invalidateAll: () => listener(null),
    setFeedConnected: () => undefined,
    setFeedLate: () => undefined,
    closed: () => undefined,
  })

/** The default filter, sort and limit of a list. */
export const ALL = {
  filter: {},
  sort: { field: 'createdAt', descending: false },
  after: null,
  limit: 1_000,
} as const

/** Removes a slice of the rows of before this time, as clean-up does. @returns whether there may be more. */
export const removeOld = (
  storage: Storage,
  name: 'email_tokens' | 'events' | 'known_networks',
  before: number,
  limit: number,
): Promise<boolean> => {
  if (name === 'events')
    return storage.cleanUp.removeOldRows({ name, key: 'id' }, 'id', firstIdAt(before), limit)
  const table = AGING_TABLES.find(table => table.name === name)
  if (table === undefined) throw new Error(`${name} does not age`)
  const { key, cleanUp }: CleanedTable = table
  if (cleanUp === undefined) throw new Error(`${name} does not age`)
  const { column, firstAt } = cleanUp
  return storage.cleanUp.removeOldRows({ name, key }, column, firstAt?.(before) ?? before, limit)
}

/** What confirms an e-mail of a user without another factor. */
export const proofOf = ({ passwordHash }: { readonly passwordHash: string }): AccountProof => ({
  passwordHash,
  factors: NO_FACTORS,
})

/** Resets the password, as the user is when it is called. @returns the changed user; `undefined` if the reset is refused. */
export const resetBy = async (
  storage: Storage,
  { digest, userId, email }: EmailToken,
  newHash: string,
  session: Session,
  event: AuditEvent,
): Promise<User | undefined> => {
  const emailVerified = (await storage.users.find(userId))?.emailVerified ?? false
  const proof = { name: 'useResetToken', args: [digest] }
  const signIn = { proof, email, emailVerified, factors: NO_FACTORS, newHash }
  const outcome = await storage.accounts.signIn(signIn, session, event)
  return typeof outcome === 'string' ? undefined : outcome.user
}
