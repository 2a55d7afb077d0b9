/** Makes users by the service's own modules, past HTTP and hashing: 10,000 take well under a second. */
import { v7 as uuidv7 } from 'uuid'
import { AccessTokens } from '../src/auth/access-tokens.ts'
import { newSession } from '../src/auth/session.ts'
import { signingKeys } from '../src/auth/signing-keys.ts'
import { openSqliteStorage } from '../src/storage/sqlite/storage.ts'
import type { Workspace } from './workspace.ts'

/** Milliseconds; the defaults of the configuration. */
const LIMITS = { lifetime: 30 * 86_400_000, idle: 10 * 86_400_000 }

/** Writes handed to the store at a time: fewer than may wait for its writer. */
const SLICE = 5_000

/** A hash in the form of a real one, of no password. */
const HASH = `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`

/** Adds users with a session each. All answers about them have the same length. @returns their access tokens. */
export const addUsers = async (
  { databaseFile, jwtSecret }: Workspace,
  count: number,
): Promise<readonly string[]> => {
  const storage = await openSqliteStorage(databaseFile)
  const tokens = new AccessTokens(signingKeys(jwtSecret, null), Date.now)
  const issued: string[] = []
  const add = async (index: number): Promise<void> => {
    const now = Date.now()
    const name = String(index).padStart(8, '0')
    const user = {
      id: uuidv7(),
      email: `user${name}@example.com`,
      passwordHash: HASH,
      firstName: `First${name}`,
      lastName: `Last${name}`,
      emailVerified: true,
      disabled: false,
      createdAt: now,
      updatedAt: now,
    }
    const session = newSession(user.id, now, LIMITS)
    await storage.sessions.addUser(user, session)
    issued.push(tokens.issue(session))
  }
  try {
    for (let start = 0; start < count; start += SLICE) {
      const size = Math.min(SLICE, count - start)
      await Promise.all(Array.from({ length: size }, (_, offset) => add(start + offset)))
    }
  } finally {
    await storage.close()
  }
  return issued
}
