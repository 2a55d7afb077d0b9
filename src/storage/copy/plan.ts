/** Decides for a slice of users what a copy does with each: when both stores have a user, the later change wins. */
import { USER_COLUMNS, type UserColumns } from '../rows.ts'

/** An error that the operator can fix. The message is complete: no stack trace is needed. */
export class CopyError extends Error {}

/** A user of the source. */
export interface SourceUser extends UserColumns {
  /** The key in the source; the target has keys of its own. */
  readonly key: number
  readonly last_request_at: number | null
  /** Only of users who are added: afterwards the rows of the factors decide. */
  readonly factors: string | null
}

export interface Conflict {
  readonly user: SourceUser
  /** The id of the other user of the target who has the e-mail. */
  readonly holder: string
}

/** The users of a slice by what the copy does with them. */
export interface SlicePlan {
  readonly added: readonly SourceUser[]
  /** Differ in the target: they become as they are in the source. */
  readonly changed: readonly SourceUser[]
  /** Those of `changed` who changed later in the source: their sessions become as they are in the source, too. */
  readonly newerInSource: readonly SourceUser[]
  readonly unchanged: readonly SourceUser[]
  /** Changed later in the target: they stay as they are there. */
  readonly newerInTarget: readonly SourceUser[]
  /** Copied before and deleted in the target since: they stay deleted. */
  readonly deletedInTarget: readonly SourceUser[]
  readonly conflicts: readonly Conflict[]
  /** The ids of those of `changed` whose e-mail changes. Another user of the slice may take the old one. */
  readonly emailMoves: readonly string[]
}

/** Timestamps of a user's last changes of access, in milliseconds since the epoch; 0 for never. */
export interface AccessChanges {
  readonly id: string
  /** Disabled or enabled. */
  readonly status: number
  readonly password: number
  readonly roles: number
}

/** Selects {@link AccessChanges} from the audit log, on both engines. */
export const ACCESS_CHANGES = `events.user_id AS id,
  coalesce(max(at) FILTER (WHERE events.type IN ('user.disabled', 'user.enabled')), 0) AS status,
  coalesce(max(at) FILTER (WHERE events.type IN ('password.changed', 'password.reset')), 0) AS password,
  coalesce(max(at) FILTER (WHERE events.details LIKE '%"roles"%'), 0) AS roles`

/** The column that each change of access is about. */
const ACCESS_COLUMNS = [
  ['status', 'disabled'],
  ['password', 'password_hash'],
  ['roles', 'roles'],
] as const

/**
 * Keeps the target's status, password and roles where the target changed them later. Otherwise a later rename in the source would undo
 * a disabling in the target.
 * @returns `user` itself when nothing of the target is kept.
 */
export const withLaterAccess = (
  user: SourceUser,
  targetUser: UserColumns | undefined,
  sourceAccess: AccessChanges | undefined,
  targetAccess: AccessChanges | undefined,
): SourceUser => {
  const kept = ACCESS_COLUMNS.filter(
    ([change]) => (targetAccess?.[change] ?? 0) > (sourceAccess?.[change] ?? 0),
  )
  if (targetUser === undefined || kept.length === 0) return user
  return { ...user, ...Object.fromEntries(kept.map(([, column]) => [column, targetUser[column]])) }
}

type Category = 'added' | 'changed' | 'unchanged' | 'newerInTarget' | 'deletedInTarget'

/**
 * With equal timestamps the source wins, so that changes without a timestamp are copied too: a password that was rehashed.
 * @param wasCopied whether an earlier run has copied the user.
 */
const categoryOf = (user: SourceUser, targetUser: UserColumns | undefined, wasCopied: boolean): Category => {
  if (targetUser === undefined) return wasCopied ? 'deletedInTarget' : 'added'
  if (targetUser.updated_at > user.updated_at) return 'newerInTarget'
  return USER_COLUMNS.every(column => targetUser[column] === user[column]) ? 'unchanged' : 'changed'
}

/**
 * @param users a slice of the source.
 * @param targetUsers every user of the target who has an id or an e-mail of the slice.
 * @param copiedIds the ids of the slice that an earlier run has copied.
 */
export const planSlice = (
  users: readonly SourceUser[],
  targetUsers: readonly UserColumns[],
  copiedIds: ReadonlySet<string>,
): SlicePlan => {
  const byId = new Map(targetUsers.map(user => [user.id, user]))
  const holders = new Map(targetUsers.map(({ id, email }) => [email, id]))
  const categories = Map.groupBy(users, user => categoryOf(user, byId.get(user.id), copiedIds.has(user.id)))
  const changesEmail = ({ id, email }: SourceUser): boolean => (byId.get(id)?.email ?? email) !== email
  const conflicts: Conflict[] = []

  let added = categories.get('added') ?? []
  let changed = categories.get('changed') ?? []
  // A blocked user keeps an e-mail that another user may need, so repeat until no more users are blocked.
  for (;;) {
    const emailMoves = new Set(changed.filter(changesEmail).map(({ id }) => id))
    const blocked = new Set<SourceUser>()
    for (const user of [...added, ...changed]) {
      const holder = holders.get(user.email)
      if (holder === undefined || holder === user.id || emailMoves.has(holder)) continue
      blocked.add(user)
      conflicts.push({ user, holder })
    }
    if (blocked.size === 0) {
      const { unchanged = [], newerInTarget = [], deletedInTarget = [] } = Object.fromEntries(categories)
      // Equal timestamps mean that a password was rehashed, in either store. Sessions are not affected.
      const newerInSource = changed.filter(({ id, updated_at }) => byId.get(id)?.updated_at !== updated_at)
      return {
        added,
        changed,
        newerInSource,
        unchanged,
        newerInTarget,
        deletedInTarget,
        conflicts,
        emailMoves: [...emailMoves],
      }
    }
    added = added.filter(user => !blocked.has(user))
    changed = changed.filter(user => !blocked.has(user))
  }
}
