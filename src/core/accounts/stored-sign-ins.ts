/**
 * Sign-ins that use something up in their transaction: a mailed code or link, or a passkey's counter. If the method proves the mailbox and
 * the e-mail was never confirmed, somebody else may have opened the account: the sign-in empties it (removes the password, sessions, keys,
 * factors and pending mails), so that nobody else keeps access.
 */

import { firstRow, type Steps, USER_KEY } from '#storage/operations/operation'
import { endsAccess, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { givesAccess, grantsAccess, type OwnedTable, operationName } from '#storage/stored-feature'
import type { AuditEvent } from '../audit-log/event.ts'
import { consequenceOf, recordStatement } from '../audit-log/stored-events.ts'
import type { Session } from '../auth/session.ts'
import { endImpersonationsBy } from '../auth/stored-keys.ts'
import { addSessionStatement, forgetNetworksStatement, revokeAllSessions } from '../auth/stored-sessions.ts'
import type { AccountFeature, SignInProof } from '../store/account-feature.ts'
import type { Factor } from '../users/factors.ts'
import { deleteOwned, type OwnedTables, takeOwned } from '../users/owned-rows.ts'
import type { UserRefusal } from '../users/refusals.ts'
import { invalidateMails, RETURNING_USER } from '../users/stored-users.ts'
import type { User } from '../users/user.ts'
import { LOCK_USERS_TABLE, lockUser } from '../users/user-locks.ts'
import { factorsColumn, selectUser, toFactors, toUser, type UserRow } from '../users/user-rows.ts'
import type { RemovedAccess } from './mails.ts'

/** What a sign-in has verified, compared with the user in the transaction. */
export interface ProvedSignIn {
  /** A {@link SignInProof} by name, with that of its feature before it, and its arguments. */
  readonly proof: { readonly name: string; readonly args: readonly unknown[] }
  /** A {@link SignInProof} too, which runs after the account was emptied, with the newest event. */
  readonly addition?: ProvedSignIn['proof'] | null
  /** The recipient, whose mailbox is proved; `null` for methods that do not prove it. */
  readonly email: string | null
  readonly emailVerified: boolean
  /** Factors for which a code was verified; `null` if the method needs none. Not compared if the account is emptied. */
  readonly factors: readonly Factor[] | null
  /** The hash of a new password, which ends all sessions and pending mails; `null` keeps the password. */
  readonly newHash: string | null
}

export interface SignedIn {
  readonly user: User
  readonly removed: readonly RemovedAccess[]
}

interface Access {
  /** In the order of deletions. */
  readonly tables: readonly OwnedTable[]
  /** The type of the event of a removed factor, by its name. */
  readonly removals: Readonly<Record<string, string>>
}

const accessOf = (features: readonly AccountFeature[], owned: readonly OwnedTable[]): Access => ({
  tables: owned.filter(givesAccess),
  removals: Object.fromEntries(
    features.flatMap(({ factor }) => (factor?.removal === undefined ? [] : [[factor.name, factor.removal]])),
  ),
})

type Details = AuditEvent['details']

/** Records the events of one change in their order; the first one has the id of `event`. The function returns the event as recorded. */
const recorderOf = (event: AuditEvent) => {
  let last: AuditEvent | null = null
  return function* record(type: string, details: Details = null): Steps<AuditEvent> {
    last = last === null ? { ...event, type, details } : consequenceOf(last, type, details)
    yield recordStatement(last)
    return last
  }
}

type Recorder = ReturnType<typeof recorderOf>

/** Deletes what gives access to the account of a user, who must be locked, except the password. @returns what it was. */
function* emptyAccount(
  { tables, removals }: Access,
  { id: userId, factors, has_password }: UserRow,
  isReplaced: boolean,
  record: Recorder,
): Steps<readonly RemovedAccess[]> {
  const removed: RemovedAccess[] = []
  if (has_password === 1 && !isReplaced) {
    yield* record('password.removed')
    removed.push({ kind: 'password', count: 1 })
  }
  const sessions = yield* revokeAllSessions(userId)
  if (sessions.length > 0) {
    yield* record('sessions.ended')
    removed.push({ kind: 'sessions', count: sessions.length })
  }
  for (const factor of toFactors(factors)) {
    const removal = removals[factor]
    if (removal === undefined) continue
    yield* record(removal)
    removed.push({ kind: factor, count: 1 })
  }
  for (const table of tables) {
    if (!grantsAccess(table)) {
      yield* deleteOwned([table], userId)
      continue
    }
    const { type, detail } = table.grantsAccess
    const keys = yield* takeOwned(table, userId)
    for (const key of keys) yield* record(type, { [detail]: key })
    if (keys.length > 0) removed.push({ kind: table.name, count: keys.length })
  }
  yield* invalidateMails([], userId)
  yield forgetNetworksStatement(userId)
  return removed
}

function* useResetToken({ userId, at }: AuditEvent, digest: string): Steps<'proved' | 'notProved'> {
  const used = yield* firstRow({
    text: `DELETE FROM email_tokens WHERE digest = $2 AND expires_at > $3 AND user_key = ${USER_KEY}
      AND email = (SELECT email FROM users WHERE id = $1) RETURNING digest`,
    values: [userId, digest, at],
  })
  return used === undefined ? 'notProved' : 'proved'
}

/** Proofs by name; one of a feature has the name of the feature before it. */
const proofsOf = (features: readonly AccountFeature[]): ReadonlyMap<string, SignInProof> =>
  new Map<string, SignInProof>([
    ['useResetToken', useResetToken],
    ...features.flatMap(feature =>
      Object.entries(feature.signInProofs ?? {}).map(
        ([name, proof]) => [operationName(feature, name), proof] as const,
      ),
    ),
  ])

const CONFIRM = `UPDATE users SET email_verified = 1, password_hash = CAST($3 AS text), factors = CAST($4 AS text),
  updated_at = $2, version = version + 1 WHERE id = $1 ${RETURNING_USER}`

const REPLACE_PASSWORD = `UPDATE users SET password_hash = $3, updated_at = $2, version = version + 1
  WHERE id = $1 ${RETURNING_USER}`

const isEmptied = ({ email, emailVerified }: ProvedSignIn): boolean => email !== null && !emailVerified

const changesUser = (signIn: ProvedSignIn): boolean => isEmptied(signIn) || signIn.newHash !== null

/** @returns the user, locked; or why the sign-in is refused, before its proof is looked at. */
function* findUser(
  signIn: ProvedSignIn,
  userId: string,
): Steps<UserRow | 'notProved' | 'userChanged' | 'userNotFound'> {
  const { email, emailVerified, factors, addition = null } = signIn
  const changes = changesUser(signIn)
  if (changes) yield LOCK_USERS_TABLE
  const strength = changes || addition !== null ? 'change' : 'shared'
  if ((yield* lockUser(userId, null, strength)) === undefined) return 'userNotFound'
  const found = yield* firstRow<UserRow>({
    text: `${selectUser()} WHERE id = $1`,
    values: [userId],
  })
  if (found === undefined) return 'userNotFound'
  if (email !== null && found.email !== email) return 'notProved'
  if ((found.email_verified === 1) !== emailVerified) return 'userChanged'
  const hasOtherFactors = factors !== null && found.factors !== factorsColumn(factors)
  return hasOtherFactors && !isEmptied(signIn) ? 'userChanged' : found
}

function* prove(
  proofs: ReadonlyMap<string, SignInProof>,
  { name, args }: ProvedSignIn['proof'],
  event: AuditEvent,
): ReturnType<SignInProof> {
  return yield* (proofs.get(name) as SignInProof)(event, ...(args as never[]))
}

function* proveUser(
  proofs: ReadonlyMap<string, SignInProof>,
  signIn: ProvedSignIn,
  event: AuditEvent,
): Steps<UserRow | 'recorded' | 'notProved' | 'userChanged' | 'userNotFound' | 'accountDisabled'> {
  const found = yield* findUser(signIn, event.userId)
  if (typeof found === 'string') return found
  const outcome = yield* prove(proofs, signIn.proof, event)
  if (outcome !== 'proved') return outcome
  // Only a valid proof may reveal it.
  return found.disabled === 1 ? 'accountDisabled' : found
}

function* openSession(found: UserRow, session: Session, event: AuditEvent) {
  yield addSessionStatement(session)
  yield recordStatement(event)
  return { signedIn: { user: toUser(found), removed: [] }, newest: event }
}

export const signInOperations = (
  features: readonly AccountFeature[],
  { all, mailed, endWithSessions: ending }: OwnedTables,
) => {
  const access = accessOf(features, all)
  const proofs = proofsOf(features)

  /** Empties the account, or ends what a new password ends. @returns the newest event too. */
  function* changeAccount(
    signIn: ProvedSignIn,
    found: UserRow,
    session: Session,
    event: AuditEvent,
  ): Steps<{ readonly signedIn: SignedIn; readonly newest: AuditEvent }> {
    const { userId, at } = event
    const { newHash } = signIn
    const record = recorderOf(event)
    const empties = isEmptied(signIn)
    let removed: readonly RemovedAccess[] = []
    if (empties) {
      yield* record('email.verified', { emptied: true })
      removed = yield* emptyAccount(access, found, newHash !== null, record)
    } else {
      yield* invalidateMails(mailed, userId)
      yield* revokeAllSessions(userId)
      yield forgetNetworksStatement(userId)
      for (const table of ending)
        for (const key of yield* takeOwned(table, userId))
          yield* record(table.grantsAccess.type, { [table.grantsAccess.detail]: key })
    }
    yield addSessionStatement(session)
    const newest = yield* record(event.type, event.details)
    const user = yield* firstRow<UserRow>(
      empties
        ? { text: CONFIRM, values: [userId, at, newHash, null] }
        : { text: REPLACE_PASSWORD, values: [userId, at, newHash] },
    )
    return { signedIn: { user: toUser(user as UserRow), removed }, newest }
  }

  return {
    /**
     * Uses up what proves the sign-in and opens a session. A proof of the mailbox makes the e-mail verified, and may empty the account.
     * @returns `notProved` for an invalid proof; `userChanged` if the user is not what was read, or the addition is refused.
     */
    *signIn(
      signIn: ProvedSignIn,
      session: Session,
      event: AuditEvent,
    ): Steps<Write<SignedIn | 'notProved' | 'userChanged' | UserRefusal>> {
      const { userId } = event
      const found = yield* proveUser(proofs, signIn, event)
      if (found === 'recorded') return invalidatesNothing('notProved')
      if (typeof found === 'string') return refusedFor(userId, found)
      const { addition = null } = signIn
      const { signedIn, newest } = changesUser(signIn)
        ? yield* changeAccount(signIn, found, session, event)
        : yield* openSession(found, session, event)
      if (addition !== null && (yield* prove(proofs, addition, newest)) !== 'proved')
        return refusedFor(userId, 'userChanged')
      if (!changesUser(signIn)) return invalidatesNothing(signedIn)
      return endsAccess([userId, ...(yield* endImpersonationsBy(userId))], signedIn)
    },
  }
}
