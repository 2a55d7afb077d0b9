/** The PostgreSQL engine: reads and writes through one pool, invalidations through a connection of their own. */
import type { EmailToken } from '../../accounts/email-token.ts'
import type { InvalidationListener } from '../../auth/invalidation.ts'
import { BoundedQueue } from '../../concurrency/bounded-queue.ts'
import { ServiceError } from '../../errors.ts'
import {
  type SessionRow,
  toCredentials,
  toSession,
  toUser,
  type UserRow,
  type UserRowWithHash,
} from '../rows.ts'
import type { Storage } from '../storage.ts'
import { cleanUp } from './clean-up.ts'
import { Database } from './database.ts'
import { followEvents, listEvents, logEnd } from './events.ts'
import { InvalidationFeed } from './invalidation-feed.ts'
import { countUsers, exportUsers, listUsers } from './lists.ts'
import { openPrimary } from './migrate.ts'
import { operations } from './operations.ts'
import { SELECT_READ_ONLY } from './primary-server.ts'
import {
  type FoundRow,
  LIST_SESSIONS,
  SELECT_BY_EMAIL,
  SELECT_BY_ID,
  SELECT_EMAIL_TOKEN,
  SELECT_SESSION,
  toFound,
} from './queries.ts'
import { openRateLimit } from './rate-limits.ts'

/** The share of connections for lists and counts, which can take a hundred times as long as sign-ins and authentication. */
const LISTS_SHARE = 0.5

/** How many lists may wait, and for how many milliseconds. Further calls are rejected at once, others when their time is over. */
const MAX_WAITING_LISTS = 200
const LIST_WAIT_LIMIT = 5_000

/** A response of 2xx to a write means that it is on disk (DESIGN §7). */
const assertDurable = async (database: Database): Promise<void> => {
  const text = `SELECT current_setting('synchronous_commit') AS mode`
  const [setting] = await database.read<{ mode: string }>({ text, values: [] })
  if (setting?.mode === 'off') {
    const message = 'the database acknowledges writes that are not on disk: synchronous_commit is off'
    throw Object.assign(new Error(message), { code: 'NOT_DURABLE' })
  }
}

/**
 * Opens the store in the PostgreSQL database of `url` and migrates it. Of several servers, the one that currently takes writes is
 * used.
 * @param connections the maximum number; one more listens for changes.
 * @throws {Error} if the database cannot be reached or migrated, or acknowledges writes that are not on disk (`NOT_DURABLE`).
 */
export const openPostgresStorage = async (url: string, connections: number): Promise<Storage> => {
  const primary = await openPrimary(url)
  let listener: InvalidationListener | null = null
  const database = new Database(primary, connections, userId => listener?.invalidateUser(userId))
  await assertDurable(database).catch(async error => {
    primary.close()
    await database.close()
    throw error
  })
  const invalidationFeed = new InvalidationFeed(primary)
  const lists = new BoundedQueue(Math.ceil(connections * LISTS_SHARE), MAX_WAITING_LISTS, LIST_WAIT_LIMIT)
  const write = operations(database)

  return {
    users: {
      async find(id) {
        const [row] = await database.read<UserRow>({ name: 'user', text: SELECT_BY_ID, values: [id] })
        return row && toUser(row)
      },
      async findByEmail(email) {
        const [row] = await database.read<UserRowWithHash>({
          name: 'user-by-email',
          text: SELECT_BY_EMAIL,
          values: [email],
        })
        return row && toCredentials(row)
      },
      update: write.updateUser,
      remove: write.removeUser,
      list: query => lists.run(() => listUsers(database, query)),
      count: filter => lists.run(() => countUsers(database, filter)),
    },
    accounts: {
      addUser: write.addUser,
      rehash: write.rehash,
      changePassword: write.changePassword,
    },
    sessions: {
      open: write.openSession,
      revoke: write.revokeSession,
      revokeAll: write.revokeSessions,
      async list(userId, now, idleSince, limit) {
        const values = [userId, now, idleSince, limit]
        const rows = await database.read<SessionRow>({ name: 'sessions', text: LIST_SESSIONS, values })
        return rows.map(row => toSession(row, userId))
      },
      async find(id, onStart) {
        const statement = { name: 'session', text: SELECT_SESSION, values: [id] }
        const [row] = await database.read<FoundRow>(statement, onStart)
        return row && toFound(row)
      },
    },
    emailTokens: {
      add: write.addEmailToken,
      async find(digest, now) {
        const statement = { name: 'email-token', text: SELECT_EMAIL_TOKEN, values: [digest, now] }
        const [token] = await database.read<EmailToken>(statement)
        return token
      },
      confirmEmail: write.confirmEmail,
      resetPassword: write.resetPassword,
    },
    events: {
      record: write.record,
      list: query => lists.run(() => listEvents(database, query)),
      positionKind: 'transactions',
      follow: query => lists.run(() => followEvents(database, query)),
      end: () => lists.run(() => logEnd(database)),
    },
    lastRequests: { noteLastRequests: write.noteLastRequests },
    openRateLimit: openRateLimit(database),
    bulkUsers: { importUsers: write.importUsers, exportUsers: after => exportUsers(database, after) },
    cleanUp: cleanUp(database),
    subscribe(newListener) {
      listener = newListener
      invalidationFeed.subscribe(newListener)
    },
    async ping() {
      const [setting] = await database.read<{ read_only: string }>({ text: SELECT_READ_ONLY, values: [] })
      // After a failover, the address may still lead to a server that takes no writes.
      if (setting?.read_only !== 'on') return
      primary.startSearch()
      throw new ServiceError('storeUnavailable')
    },
    async close() {
      primary.close()
      invalidationFeed.close()
      await database.close()
    },
  }
}
