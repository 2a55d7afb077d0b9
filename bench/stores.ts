/** Stores full of users, made by the service's own modules, past HTTP and hashing: a million take about a minute. */
import Database from 'better-sqlite3'
import { v7 as uuidv7 } from 'uuid'
import { AccessTokens } from '../src/auth/access-tokens.ts'
import { hashOfNobody } from '../src/auth/hash-parameters.ts'
import { newSession } from '../src/auth/session.ts'
import { signingKeys } from '../src/auth/signing-keys.ts'
import { openDatabase } from '../src/storage/sqlite/database.ts'
import { migrate } from '../src/storage/sqlite/migrate.ts'
import { prepareOperations } from '../src/storage/sqlite/operations.ts'
import type { Location } from './processes.ts'
import { shuffled } from './statistics.ts'
import { createWorkspace } from './workspace.ts'

export interface Store extends Location {
  /** Access tokens of so many of the users, spread over all of them, in random order. */
  tokens(count: number): readonly string[]
}

/** Milliseconds; the defaults of the configuration. */
const LIMITS = { lifetime: 30 * 86_400_000, idle: 10 * 86_400_000 }

/** Users added in one transaction. */
const SLICE = 50_000

const digits = (value: number): string => String(value).padStart(8, '0')

/** A number that looks like chance and is never the same twice: a prime is prime to all counts but its multiples. */
const scattered = (index: number, count: number): number => (index * 7_654_321) % count

/** First names go in the order of sign-up, last names are scattered. All accounts have the same length. */
const addUsers = (file: string, count: number): void => {
  const db = openDatabase(file, 0)
  const { addUser } = prepareOperations(db)
  const passwordHash = hashOfNobody()
  const addSlice = db.transaction((from: number) => {
    for (let index = from; index < Math.min(from + SLICE, count); index += 1) {
      const now = Date.now()
      const user = {
        id: uuidv7(),
        email: `user${digits(index)}@example.com`,
        passwordHash,
        firstName: `First${digits(index)}`,
        lastName: `Last${digits(scattered(index, count))}`,
        emailVerified: true,
        disabled: false,
        createdAt: now,
        updatedAt: now,
      }
      addUser(user, newSession(user.id, now, LIMITS))
    }
  })
  for (let from = 0; from < count; from += SLICE) addSlice(from)
  db.close()
}

interface Row {
  id: string
  userId: string
  createdAt: number
  expiresAt: number
  lastRequestAt: number
}

const readSessions = (file: string, every: number): readonly Row[] => {
  const db = new Database(file, { readonly: true })
  const rows = db
    .prepare<[number], Row>(
      `SELECT sessions.id, users.id AS userId, sessions.created_at AS createdAt, expires_at AS expiresAt,
       last_request_at AS lastRequestAt FROM users JOIN sessions ON sessions.user_key = users.key WHERE users.key % ? = 0`,
    )
    .all(every)
  db.close()
  return rows
}

export const createStore = async (users: number): Promise<Store> => {
  const { databaseFile, jwtSecret } = createWorkspace()
  await migrate(databaseFile)
  addUsers(databaseFile, users)
  const issuer = new AccessTokens(signingKeys(jwtSecret, null))
  return {
    databaseFile,
    jwtSecret,
    tokens(count) {
      const sessions = readSessions(databaseFile, Math.floor(users / count))
      return shuffled(sessions.map(session => issuer.issue(session)))
    },
  }
}
