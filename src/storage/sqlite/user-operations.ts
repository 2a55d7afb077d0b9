/** Writes of users: sign-up, changes, removal. */
import type { AccountExtras, NewUser } from '../../accounts/account-store.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { User, UserChanges } from '../../users/user.ts'
import type { UpdateOptions, UpdateRefusal, UserRefusal } from '../../users/user-store.ts'
import { updateRefusalOf } from '../refusals.ts'
import { changedColumns, emailTokenColumns, USER_COLUMNS, userColumns } from '../rows.ts'
import { invalidates, invalidatesNothing, refusedFor, type Write } from '../write.ts'
import type { Connection } from './database.ts'
import { parameters } from './parameters.ts'
import { INSERT_EMAIL_TOKEN, type SharedStatements } from './shared-statements.ts'

const isEmailTaken = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  error.code === 'SQLITE_CONSTRAINT_UNIQUE' &&
  error.message.endsWith('users.email')

/** Runs a write of an e-mail. @returns the number of changed rows, or `emailTaken` if another user has the e-mail. */
export const unlessEmailTaken = (write: () => { readonly changes: number }): number | 'emailTaken' => {
  try {
    return write().changes
  } catch (error) {
    if (isEmailTaken(error)) return 'emailTaken'
    throw error
  }
}

export const INSERT_USER = `INSERT INTO users (${USER_COLUMNS.join(', ')}) VALUES (${parameters(USER_COLUMNS)})`

export const prepareUserOperations = (db: Connection, shared: SharedStatements) => {
  const { record, recordRemoval, refusal, addSession, revokeSessions, deleteTokens, readChanged } = shared
  const insertUser = db.prepare(INSERT_USER)
  const insertToken = db.prepare(INSERT_EMAIL_TOKEN)
  const deleteUser = db.prepare('DELETE FROM users WHERE id = ?')
  const selectState = db.prepare<[string], { disabled: number; version: number }>(
    'SELECT disabled, version FROM users WHERE id = ?',
  )
  // The IP addresses of administrators are not personal data of the user.
  const eraseIpAddresses = db.prepare(
    `UPDATE events SET ip = NULL WHERE user_id = ? AND actor_type <> 'adminKey'`,
  )

  const updateRefusal = (id: string, { onlyEnabled, versions }: UpdateOptions): UpdateRefusal | null => {
    const user = selectState.get(id)
    const state = user && {
      disabled: user.disabled,
      current: versions === null || versions.includes(user.version),
    }
    return updateRefusalOf(state, { onlyEnabled })
  }

  return {
    addUser(user: NewUser, event: AuditEvent, { session, emailToken }: AccountExtras): Write<boolean> {
      const added = unlessEmailTaken(() => insertUser.run(userColumns(user)))
      if (added === 'emailTaken') return invalidatesNothing(false)
      if (session && !addSession(session)) throw new Error('The session belongs to another user')
      if (emailToken) insertToken.run({ ...emailTokenColumns(emailToken), userId: emailToken.userId })
      record(event)
      return invalidatesNothing(true)
    },

    updateUser(
      id: string,
      changes: UserChanges,
      event: AuditEvent,
      options: UpdateOptions,
    ): Write<User | UpdateRefusal> {
      const refused = updateRefusal(id, options)
      if (refused !== null) return refusedFor(id, refused)
      const set = { ...changedColumns(changes), updated_at: event.at }
      const assignments = Object.keys(set).map(column => `${column} = @${column}`)
      const update = `UPDATE users SET ${assignments.join(', ')}, version = version + 1 WHERE id = @id`
      const changed = unlessEmailTaken(() => db.prepare(update).run({ ...set, id }))
      if (changed === 'emailTaken') return refusedFor(id, changed)
      if (options.revokeSessions) revokeSessions(id, null)
      if (options.invalidateTokens) deleteTokens(id)
      record(event)
      return invalidates(id, readChanged(id))
    },

    removeUser(event: AuditEvent, verifiedHash: string | null): Write<'removed' | UserRefusal> {
      const { userId } = event
      const refused = refusal(userId, { verifiedHash, onlyEnabled: verifiedHash !== null })
      if (refused !== null) return refusedFor(userId, refused)
      deleteUser.run(userId)
      recordRemoval(event)
      eraseIpAddresses.run(userId)
      return invalidates(userId, 'removed')
    },
  }
}
