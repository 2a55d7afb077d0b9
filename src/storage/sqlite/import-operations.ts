/** Users from elsewhere, as the writer thread adds them: many in one call, which other writes wait for. */
import type { Imported, PortableUser } from '../../accounts/bulk-users.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import { userColumns } from '../rows.ts'
import { invalidatesNothing, type Write } from '../write.ts'
import type { Connection } from './database.ts'
import type { SharedStatements } from './shared-statements.ts'
import { INSERT_USER } from './user-operations.ts'

export const prepareImportOperations = (db: Connection, { record }: SharedStatements) => {
  const addUser = db.prepare(`${INSERT_USER} ON CONFLICT DO NOTHING`)
  const noteLastRequest = db.prepare('INSERT INTO last_requests (user_key, at) VALUES (?, ?)')
  const idOf = db.prepare<[string], string>('SELECT id FROM users WHERE email = ?').pluck()

  const importUser = (user: PortableUser, event: AuditEvent): Imported => {
    const { changes, lastInsertRowid } = addUser.run(userColumns(user))
    if (changes === 1) {
      if (user.lastRequestAt !== null) noteLastRequest.run(lastInsertRowid, user.lastRequestAt)
      record(event)
      return { status: 'created' }
    }
    const id = idOf.get(user.email)
    return id === undefined ? { status: 'idTaken' } : { status: 'exists', id }
  }

  return {
    importUsers: (
      users: readonly PortableUser[],
      events: readonly AuditEvent[],
    ): Write<readonly Imported[]> =>
      invalidatesNothing(users.map((user, index) => importUser(user, events[index] as AuditEvent))),
  }
}
