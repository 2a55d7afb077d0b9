import type { EmailToken } from '../../accounts/email-token.ts'
import type { InvalidationListener } from '../../auth/invalidation.ts'
import { BoundedQueue } from '../../concurrency/bounded-queue.ts'
import { ServiceError } from '../../errors.ts'
import { type EventRow, type SessionRow, toEvent, toSession, toUser, type UserRow } from '../rows.ts'
import type { Storage } from '../storage.ts'
import { cleanUp } from './clean-up.ts'
import { Database } from './database.ts'
import { eventPage, follow, logEnd } from './events.ts'
import { exporter } from './exports.ts'
import { InvalidationFeed } from './invalidation-feed.ts'
import { count, page } from './lists.ts'
import { bringUpToDate } from './migrate.ts'
import { operations } from './operations.ts'
import {
  type FoundRow,
  LIST_SESSIONS,
  SELECT_BY_EMAIL,
  SELECT_BY_ID,
  SELECT_EMAIL_TOKEN,
  SELECT_SESSION,
  toFound,
} from './queries.ts'
import { rateLimits } from './rate-limits.ts'

/** The share of connections for lists and counts, which can take a hundred times as long as sign-ins and authentication. */
const LISTS_SHARE = 0.5

/** How many lists may wait, and for how many milliseconds. Further calls are rejected at once, others when their time is over. */
const MAX_WAITING_LISTS = 200
const LIST_WAIT_LIMIT = 5_000

/** After a failover, the address may still lead to a server that takes no writes. */
const READ_ONLY = `SELECT current_setting('transaction_read_only') AS read_only`

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
  const hosts = await bringUpToDate(url)
  let listener: InvalidationListener | null = null
  const database = new Database(hosts, connections, userId => listener?.userChanged(userId))
  await assertDurable(database).catch(async error => {
    hosts.close()
    await database.close()
    throw error
  })
  const invalidationFeed = new InvalidationFeed(hosts)
  const lists = new BoundedQueue(Math.ceil(connections * LISTS_SHARE), MAX_WAITING_LISTS, LIST_WAIT_LIMIT)
  const write = operations(database)

  return {
    users: {
      async find(id) {
        const [row] = await database.read<UserRow>({ name: 'user', text: SELECT_BY_ID, values: [id] })
        return row && toUser(row)
      },
      async findByEmail(email) {
        const [row] = await database.read<UserRow & { password_hash: string }>({
          name: 'user-by-email',
          text: SELECT_BY_EMAIL,
          values: [email],
        })
        return row && { user: toUser(row), passwordHash: row.password_hash }
      },
      update: write.updateUser,
      remove: write.removeUser,
      list: query => lists.run(async () => (await database.read<UserRow>(page(query))).map(toUser)),
      count: filter =>
        lists.run(async () => (await database.read<{ total: number }>(count(filter)))[0]?.total ?? 0),
    },
    accounts: {
      addUser: write.addUser,
      rehash: write.rehash,
      changePassword: write.changePassword,
    },
    sessions: {
      open: write.openSession,
      end: write.endSession,
      endAll: write.endSessions,
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
      list: query => lists.run(async () => (await database.read<EventRow>(eventPage(query))).map(toEvent)),
      positionKind: 'transactions',
      follow: query => lists.run(() => follow(database, query)),
      end: () => lists.run(() => logEnd(database)),
    },
    lastRequests: { noteLastRequests: write.noteLastRequests },
    rateLimit: rateLimits(database),
    bulkUsers: { importUsers: write.importUsers, exportUsers: exporter(database) },
    cleanUp: cleanUp(database),
    subscribe(newListener) {
      listener = newListener
      invalidationFeed.subscribe(newListener)
    },
    async ping() {
      const [setting] = await database.read<{ read_only: string }>({ text: READ_ONLY, values: [] })
      if (setting?.read_only !== 'on') return
      hosts.startSearch()
      throw new ServiceError('storeUnavailable')
    },
    async close() {
      hosts.close()
      invalidationFeed.close()
      await database.close()
    },
  }
}
