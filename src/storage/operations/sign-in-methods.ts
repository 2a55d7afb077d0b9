/** Removal of ways to sign in. The last one stays, exactly: every removal locks the user. */
import type { AuditEvent } from '../../audit-log/event.ts'
import { type OwnedTable, type StoredFeature, tablesOf } from '../stored-feature.ts'
import { recordStatement } from './events.ts'
import { changeFactors, type OwnFactorChange, setFactor } from './factors.ts'
import { firstRow, type Steps, USER_KEY } from './operation.ts'
import { type OwnedTables, ownedTable, quoted } from './owned-rows.ts'
import type { SessionRefusal } from './refusals.ts'
import { lowerAssuranceStatement, refusalOfSession } from './sessions.ts'
import { invalidates, refusedFor, type Write } from './write.ts'

/** A row of a table with `signsIn`, such as a passkey. The method may be switched off. */
export interface SignInRow {
  readonly table: string
  readonly id: string
  /** What it proved in sessions, in a value of RFC 8176: they do not count as sessions with two factors any more. */
  readonly amr: string
}

/** The methods that are switched on. */
export interface EnabledMethods {
  readonly names: readonly string[]
  /** Whether every user can sign in by mail. */
  readonly hasMailed: boolean
}

export const signInMethodOperations = (features: readonly StoredFeature[], { all }: OwnedTables) => {
  const signingIn = all.filter(({ signsIn }) => signsIn !== undefined)

  function* hasRow({ name, owner, key }: OwnedTable, userId: string): Steps<boolean> {
    const row = yield* firstRow({
      text: `SELECT ${quoted(key)} FROM ${quoted(name)} WHERE ${quoted(owner)} = ${USER_KEY} LIMIT 1`,
      values: [userId],
    })
    return row !== undefined
  }

  function* hasPassword(userId: string): Steps<boolean> {
    const user = yield* firstRow({
      text: 'SELECT id FROM users WHERE id = $1 AND password_hash IS NOT NULL',
      values: [userId],
    })
    return user !== undefined
  }

  /** Whether the user, who is locked, can sign in without a password. */
  function* hasOtherMethod(userId: string, { names, hasMailed }: EnabledMethods): Steps<boolean> {
    if (hasMailed) return true
    const enabled = signingIn.filter(({ signsIn = '' }) => names.includes(signsIn))
    for (const table of enabled) if (yield* hasRow(table, userId)) return true
    return false
  }

  return {
    /** Removes the password of the event's user. */
    *removePassword(
      sessionId: string,
      enabled: EnabledMethods,
      event: AuditEvent,
    ): Steps<Write<'removed' | 'passwordNotFound' | 'lastSignInMethod' | SessionRefusal>> {
      const { userId, at } = event
      const refused = yield* refusalOfSession(userId, sessionId)
      if (refused !== null) return refusedFor(userId, refused)
      if (!(yield* hasPassword(userId))) return refusedFor(userId, 'passwordNotFound')
      if (!(yield* hasOtherMethod(userId, enabled))) return refusedFor(userId, 'lastSignInMethod')
      yield {
        text: 'UPDATE users SET password_hash = NULL, updated_at = $2, version = version + 1 WHERE id = $1',
        values: [userId, at],
      }
      yield lowerAssuranceStatement(userId, 'pwd')
      yield recordStatement(event)
      return invalidates(userId, 'removed')
    },

    /** Removes one way to sign in of the event's user. */
    removeSignInRow: (
      { table, id, amr }: SignInRow,
      enabled: EnabledMethods,
      change: OwnFactorChange,
      event: AuditEvent,
    ) =>
      changeFactors(change, event, function* () {
        const { userId, at } = event
        const signedInBy = ownedTable(signingIn, table)
        const { name, owner, key } = signedInBy
        const removed = yield* firstRow({
          text: `DELETE FROM ${quoted(name)} WHERE ${quoted(owner)} = ${USER_KEY} AND ${quoted(key)} = $2 RETURNING ${quoted(key)}`,
          values: [userId, id],
        })
        if (removed === undefined) return 'notFound'
        const isLast = !(yield* hasPassword(userId)) && !(yield* hasOtherMethod(userId, enabled))
        if (isLast) return 'lastSignInMethod'
        const feature = features.find(each => tablesOf([each]).some(each => each.name === table))
        if (feature?.factor !== undefined)
          yield* setFactor(userId, feature.factor.name, yield* hasRow(signedInBy, userId), at)
        yield lowerAssuranceStatement(userId, amr)
        return null
      }),
  }
}
