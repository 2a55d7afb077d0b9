/** Removal of ways to sign in. The last one stays, exactly: every removal locks the user, by `changeFactors`. Administrators may remove all factors. */

import { firstRow, type Steps, USER_KEY } from '#storage/operations/operation'
import { type OwnedTable, quoted, tablesOf } from '#storage/stored-feature'
import type { AuditEvent } from '../audit-log/event.ts'
import { lowerAmr } from '../auth/stored-sessions.ts'
import type { AccountFeature } from '../store/account-feature.ts'
import { type OwnedTables, ownedTable } from '../users/owned-rows.ts'
import { changeFactors, type OwnFactorChange, setFactor } from '../users/stored-factors.ts'
import { CORE_SIGN_IN_METHODS, type MethodAmr, removedMethod } from './sign-in-methods.ts'
import { type ConfiguredMethod, signInTablesOf } from './sign-in-tables.ts'
import { invalidateByPassword } from './stored-passwords.ts'

const PASSWORD = removedMethod({ name: 'password', amr: CORE_SIGN_IN_METHODS.password.amr })

/** A row of a table with `signsIn`, such as a passkey. Its method may be switched off. */
export interface SignInRow {
  readonly table: string
  readonly id: string
}

export interface KnownMethods {
  readonly methods: readonly (MethodAmr & ConfiguredMethod)[]
  /** Whether every user whose e-mail is confirmed can sign in by mail. A sign-in to another account empties it. */
  readonly hasMailed: boolean
}

export const signInMethodOperations = (features: readonly AccountFeature[], { all, mailed }: OwnedTables) => {
  const signingIn = all.filter(({ signsIn }) => signsIn !== undefined)

  /** @param among which rows count; `null` for all. */
  function* hasRow(
    { name, owner }: Pick<OwnedTable, 'name' | 'owner'>,
    userId: string,
    among: ConfiguredMethod['rows'] = null,
  ): Steps<boolean> {
    const row = yield* firstRow({
      text: ({ isOneOf }) => `SELECT 1 FROM ${quoted(name)} WHERE ${quoted(owner)} = ${USER_KEY}
        ${among === null ? '' : `AND ${isOneOf(quoted(among.column), '$2', 'text')}`} LIMIT 1`,
      values: among === null ? [userId] : [userId, among.values],
    })
    return row !== undefined
  }

  function* is(condition: string, userId: string): Steps<boolean> {
    const user = yield* firstRow({
      text: `SELECT id FROM users WHERE id = $1 AND ${condition}`,
      values: [userId],
    })
    return user !== undefined
  }
  const hasConfirmedEmail = (userId: string) => is('email_verified = 1', userId)
  const hasPassword = (userId: string) => is('password_hash IS NOT NULL', userId)

  /** Whether the user, who is locked, can sign in without a password. */
  function* hasOtherMethod(userId: string, { methods, hasMailed }: KnownMethods): Steps<boolean> {
    if (hasMailed && (yield* hasConfirmedEmail(userId))) return true
    for (const { table, rows } of signInTablesOf(signingIn, methods))
      if (yield* hasRow(table, userId, rows)) return true
    return false
  }

  return {
    /** Removes the password of the event's user, and invalidates what a change of it invalidates. */
    removePassword: (known: KnownMethods, change: OwnFactorChange, event: AuditEvent) =>
      changeFactors(change, event, function* () {
        const { userId, at } = event
        if (!(yield* hasPassword(userId))) return 'passwordNotFound'
        if (!(yield* hasOtherMethod(userId, known))) return 'lastSignInMethod'
        yield {
          text: 'UPDATE users SET password_hash = NULL, updated_at = $2, version = version + 1 WHERE id = $1',
          values: [userId, at],
        }
        yield* invalidateByPassword(mailed, { id: userId, emailVerified: yield* hasConfirmedEmail(userId) })
        yield* lowerAmr(userId, PASSWORD, known.methods)
        return null
      }),

    /** Removes one way to sign in of the event's user. @param change `null` if an administrator does. */
    removeSignInRow: (
      { table, id }: SignInRow,
      known: KnownMethods,
      change: OwnFactorChange | null,
      event: AuditEvent,
    ) =>
      changeFactors(change, event, function* () {
        const { userId, at } = event
        const signedInBy = ownedTable(signingIn, table)
        const { name, owner, key, signsIn } = signedInBy
        const removed = yield* firstRow({
          text: `DELETE FROM ${quoted(name)} WHERE ${quoted(owner)} = ${USER_KEY} AND ${quoted(key)} = $2 RETURNING ${quoted(key)}`,
          values: [userId, id],
        })
        if (removed === undefined) return 'notFound'
        const isLast = !(yield* hasPassword(userId)) && !(yield* hasOtherMethod(userId, known))
        if (isLast) return 'lastSignInMethod'
        const feature = features.find(each => tablesOf([each]).some(each => each.name === table))
        if (feature?.factor !== undefined)
          yield* setFactor(userId, feature.factor.name, yield* hasRow(signedInBy, userId), at)
        const method = known.methods.find(({ name }) => name === signsIn)
        if (method !== undefined) yield* lowerAmr(userId, removedMethod(method), known.methods)
        return null
      }),
  }
}
