import { USER_COLUMNS, type UserColumns } from '../rows.ts'

/** What the operator can mend, in a sentence: none of it is a fault of the code. */
export class CopyError extends Error {}

/** Who wins, user by user, where both stores have one. */

/** A user of the source. */
export interface SourceUser extends UserColumns {
  /** The source's own number. */
  readonly key: number
  readonly last_request_at: number | null
}

export interface Conflict {
  readonly user: SourceUser
  /** The id of the other user who has the e-mail in the target. */
  readonly holder: string
}

export interface Plan {
  readonly added: readonly SourceUser[]
  /** Changed in the source since: they are made as they are there. */
  readonly changed: readonly SourceUser[]
  /** Those among `changed` of whom the timestamp of the change tells so: sessions are made as they are there, too. */
  readonly later: readonly SourceUser[]
  readonly unchanged: readonly SourceUser[]
  /** Changed in the target since: left alone. */
  readonly kept: readonly SourceUser[]
  /** Copied before and deleted in the target since: they stay deleted. */
  readonly removed: readonly SourceUser[]
  readonly conflicts: readonly Conflict[]
  /** Ids of those among `changed` who leave an e-mail behind, which another one may be about to take. */
  readonly moving: readonly string[]
}

/** When a user was last disabled or enabled, and last given another password; 0 for never. Milliseconds since the epoch. */
export interface AccessChanges {
  readonly id: string
  readonly status: number
  readonly password: number
}

/** Selects {@link AccessChanges} from the audit log, on both engines. */
export const ACCESS_CHANGES = `events.user_id AS id,
  coalesce(max(at) FILTER (WHERE events.type IN ('user.disabled', 'user.enabled')), 0) AS status,
  coalesce(max(at) FILTER (WHERE events.type IN ('password.changed', 'password.reset')), 0) AS password`

/**
 * A user as the source has one, but disabled and with the password as in the target where that was changed there later: a
 * later rename in the source must not undo it.
 * @returns `user` itself where the source's changes of access are the later ones.
 */
export const withLaterAccess = (
  user: SourceUser,
  target: UserColumns,
  ours: AccessChanges | undefined,
  theirs: AccessChanges | undefined,
): SourceUser => {
  const keepsStatus = (theirs?.status ?? 0) > (ours?.status ?? 0)
  const keepsPassword = (theirs?.password ?? 0) > (ours?.password ?? 0)
  if (!keepsStatus && !keepsPassword) return user
  return {
    ...user,
    ...(keepsStatus && { disabled: target.disabled }),
    ...(keepsPassword && { password_hash: target.password_hash }),
  }
}

type Verdict = 'added' | 'changed' | 'unchanged' | 'kept' | 'removed'

/**
 * The later change wins; of two at the same timestamp the source's, so that what no timestamp tells of is carried over too: a
 * password that was hashed anew.
 */
const judge = (user: SourceUser, theirs: UserColumns | undefined, copied: boolean): Verdict => {
  if (theirs === undefined) return copied ? 'removed' : 'added'
  if (theirs.updated_at > user.updated_at) return 'kept'
  return USER_COLUMNS.every(column => theirs[column] === user[column]) ? 'unchanged' : 'changed'
}

/**
 * @param users a slice of the source.
 * @param held every user of the target who has an id or an e-mail of theirs.
 * @param copied ids of those among `users` who were copied before.
 */
export const plan = (
  users: readonly SourceUser[],
  held: readonly UserColumns[],
  copied: ReadonlySet<string>,
): Plan => {
  const byId = new Map(held.map(user => [user.id, user]))
  const holders = new Map(held.map(({ id, email }) => [email, id]))
  const verdicts = Map.groupBy(users, user => judge(user, byId.get(user.id), copied.has(user.id)))
  const leaves = ({ id, email }: SourceUser): boolean => (byId.get(id)?.email ?? email) !== email
  const conflicts: Conflict[] = []

  let added = verdicts.get('added') ?? []
  let changed = verdicts.get('changed') ?? []
  // A blocked user keeps an e-mail that another one needs, so repeat until no more users are blocked.
  for (;;) {
    const moving = new Set(changed.filter(leaves).map(({ id }) => id))
    const blocked = new Set<SourceUser>()
    for (const user of [...added, ...changed]) {
      const holder = holders.get(user.email)
      if (holder === undefined || holder === user.id || moving.has(holder)) continue
      blocked.add(user)
      conflicts.push({ user, holder })
    }
    if (blocked.size === 0) {
      const { unchanged = [], kept = [], removed = [] } = Object.fromEntries(verdicts)
      // A password that was hashed anew, on either side, ends nothing.
      const later = changed.filter(({ id, updated_at }) => byId.get(id)?.updated_at !== updated_at)
      return { added, changed, later, unchanged, kept, removed, conflicts, moving: [...moving] }
    }
    added = added.filter(user => !blocked.has(user))
    changed = changed.filter(user => !blocked.has(user))
  }
}
