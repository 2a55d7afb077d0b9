/**
 * Signing in by the mailbox alone: with a mailed code, or by a reset, which also sets a password. If the e-mail was never confirmed,
 * somebody else may have opened the account with it: the sign-in empties the account in its transaction, so that nobody else keeps access.
 */
import type { RemovedAccess } from '../../accounts/mails.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import { dummyHash } from '../../passwords/formats.ts'
import type { Factor } from '../../users/factors.ts'
import type { User } from '../../users/user.ts'
import { factorsColumn, selectUser, toFactors, toUser, type UserRow } from '../rows.ts'
import {
  grantsAccess,
  type MailboxProof,
  type OwnedTable,
  operationName,
  type StoredFeature,
} from '../stored-feature.ts'
import { consequenceOf, recordStatement } from './events.ts'
import { firstRow, type Steps, USER_KEY } from './operation.ts'
import { deleteOwned, type OwnedTables, takeOwned } from './owned-rows.ts'
import { refusalOf, type UserRefusal } from './refusals.ts'
import { addSessionStatement, forgetNetworksStatement, revokeAllSessions } from './sessions.ts'
import { LOCK_USERS_TABLE, lockUser } from './user-locks.ts'
import { invalidateMails, RETURNING_USER } from './users.ts'
import { invalidates, invalidatesNothing, refusedFor, type Write } from './write.ts'

/** A sign-in by the mailbox alone. The operation compares the state of the user, as it was read, in its transaction. */
export interface MailboxSignIn {
  /** What was mailed: `useResetToken`, or a `MailboxProof` of a feature with the name of the feature before its own, and its arguments. */
  readonly proof: { readonly name: string; readonly args: readonly unknown[] }
  /** The recipient. */
  readonly email: string
  readonly emailVerified: boolean
  /** Those for which a code was verified. Not compared if the e-mail is not verified: they are removed then. */
  readonly factors: readonly Factor[]
  /** The hash of a new password, which ends all sessions and pending mails; `null` keeps the password. */
  readonly newHash: string | null
}

export interface SignedInByMailbox {
  readonly user: User
  /** Apart from the password; `null` if the e-mail was confirmed before, so that nothing was removed. */
  readonly removed: readonly RemovedAccess[] | null
}

/** What gives access to accounts. */
interface Access {
  /** In the order of deletions. */
  readonly tables: readonly OwnedTable[]
  /** The type of the event of a removed factor, by its name. */
  readonly removals: Readonly<Record<string, string>>
}

/** @param owned every table whose rows belong to users, in the order of deletions. */
const accessOf = (features: readonly StoredFeature[], owned: readonly OwnedTable[]): Access => ({
  tables: owned.filter(table => grantsAccess(table) || table.isFactor || table.isMailed),
  removals: Object.fromEntries(
    features.flatMap(({ factor }) => (factor?.removal === undefined ? [] : [[factor.name, factor.removal]])),
  ),
})

type Details = AuditEvent['details']

/** Records the events of one change in their order. @param event of the user and client; the first one has its id. */
const recorderOf = (event: AuditEvent) => {
  let last: AuditEvent | null = null
  return function* record(type: string, details: Details = null): Steps<void> {
    last = last === null ? { ...event, type, details } : consequenceOf(last, type, details)
    yield recordStatement(last)
  }
}

type Recorder = ReturnType<typeof recorderOf>

/** Deletes what gives access to the account of a user, who must be locked, except the password. @returns what it was. */
function* emptyAccount(
  { tables, removals }: Access,
  userId: string,
  factors: string | null,
  record: Recorder,
): Steps<readonly RemovedAccess[]> {
  const removed: RemovedAccess[] = []
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

/** Uses up the token of a link that resets the password. */
function* useResetToken(userId: string, email: string, at: number, digest: string): Steps<boolean> {
  const used = yield* firstRow({
    text: `DELETE FROM email_tokens WHERE digest = $2 AND email = $3 AND expires_at > $4 AND user_key = ${USER_KEY}
      RETURNING digest`,
    values: [userId, digest, email, at],
  })
  return used !== undefined
}

/** By their names: those of features have the name of the feature before theirs. */
const mailboxProofsOf = (features: readonly StoredFeature[]): ReadonlyMap<string, MailboxProof> =>
  new Map<string, MailboxProof>([
    ['useResetToken', useResetToken],
    ...features.flatMap(feature =>
      Object.entries(feature.mailboxProofs ?? {}).map(
        ([name, proof]) => [operationName(feature, name), proof] as const,
      ),
    ),
  ])

const SIGN_IN = `UPDATE users SET email_verified = 1, password_hash = $3, factors = CAST($4 AS text), updated_at = $2, version = version + 1
  WHERE id = $1 ${RETURNING_USER}`

/** Locks the user and uses up what was mailed. @returns the user as found, or why the sign-in is refused. */
function* useProof(
  proofs: ReadonlyMap<string, MailboxProof>,
  { proof, email, emailVerified, factors }: MailboxSignIn,
  userId: string,
  at: number,
): Steps<UserRow | 'notProved' | 'userChanged' | UserRefusal> {
  yield LOCK_USERS_TABLE
  const refused = refusalOf(yield* lockUser(userId), { onlyEnabled: true })
  if (refused !== null) return refused
  const found = yield* firstRow<UserRow>({ text: `${selectUser()} WHERE id = $1`, values: [userId] })
  if (found?.email !== email) return 'notProved'
  if ((found.email_verified === 1) !== emailVerified) return 'userChanged'
  if (emailVerified && found.factors !== factorsColumn(factors)) return 'userChanged'
  const use = proofs.get(proof.name) as MailboxProof
  return (yield* use(userId, email, at, ...(proof.args as never[]))) ? found : 'notProved'
}

export const mailboxOperations = (features: readonly StoredFeature[], { all, mailed }: OwnedTables) => {
  const access = accessOf(features, all)
  const proofs = mailboxProofsOf(features)
  return {
    /**
     * Uses up what was mailed and opens a session. The e-mail becomes verified. If it was not, the account is emptied: the password,
     * sessions, pending mails, and the rows of tables that give access are removed, each with an event.
     * @returns `notProved` if what was mailed is not valid any more; `userChanged` if the user is not what was read.
     */
    *signInByMailbox(
      signIn: MailboxSignIn,
      session: Session,
      event: AuditEvent,
    ): Steps<Write<SignedInByMailbox | 'notProved' | 'userChanged' | UserRefusal>> {
      const { userId, at } = event
      const { emailVerified, newHash } = signIn
      const found = yield* useProof(proofs, signIn, userId, at)
      if (typeof found === 'string') return refusedFor(userId, found)
      if (emailVerified && newHash === null) {
        yield addSessionStatement(session)
        yield recordStatement(event)
        return invalidatesNothing({ user: toUser(found), removed: null })
      }
      const record = recorderOf(event)
      let removed: readonly RemovedAccess[] | null = null
      if (emailVerified) {
        yield* invalidateMails(mailed, userId)
        yield* revokeAllSessions(userId)
        yield forgetNetworksStatement(userId)
      } else {
        yield* record('email.verified')
        if (newHash === null) yield* record('password.removed')
        removed = yield* emptyAccount(access, userId, found.factors, record)
      }
      yield addSessionStatement(session)
      yield* record(event.type, event.details)
      const user = yield* firstRow<UserRow>({
        text: SIGN_IN,
        values: [userId, at, newHash ?? dummyHash(), emailVerified ? found.factors : null],
      })
      return invalidates(userId, { user: toUser(user as UserRow), removed })
    },
  }
}
