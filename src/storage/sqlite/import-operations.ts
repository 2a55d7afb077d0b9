/** Bulk import: many users in one call. Other writes wait until the call ends. */
import type { Imported } from '../../accounts/bulk-user-store.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { UserWithHash } from '../../users/user.ts'
import { eventValues } from '../operations/events.ts'
import { invalidatesNothing, type Write } from '../operations/write.ts'
import type { Connection } from './database.ts'
import { INSERT_USER, prepareRecord, userRow } from './hot-operations.ts'

export const prepareImportOperations = (db: Connection) => {
  const record = prepareRecord(db)
  const insertUser = db.prepare<unknown[]>(`${INSERT_USER} ON CONFLICT DO NOTHING`)
  const insertLastRequest = db.prepare('INSERT INTO last_requests (user_key, at) VALUES (?, ?)')
  const selectIdByEmail = db.prepare<[string], string>('SELECT id FROM users WHERE email = ?').pluck()

  const importUser = (user: UserWithHash, event: AuditEvent): Imported => {
    const { changes, lastInsertRowid } = insertUser.run(...userRow(user))
    if (changes === 1) {
      if (user.lastRequestAt !== null) insertLastRequest.run(lastInsertRowid, user.lastRequestAt)
      record(eventValues(event))
      return { status: 'created' }
    }
    const id = selectIdByEmail.get(user.email)
    return id === undefined ? { status: 'idTaken' } : { status: 'exists', id }
  }

  return {
    importUsers: (
      users: readonly UserWithHash[],
      events: readonly AuditEvent[],
    ): Write<readonly Imported[]> =>
      invalidatesNothing(users.map((user, index) => importUser(user, events[index] as AuditEvent))),
  }
}
