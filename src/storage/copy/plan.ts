/** Decides for a slice of users what a copy does with each: when both stores have a user, the later change wins. */
import { USER_COLUMNS, type UserColumns } from '#core/users/user-rows'

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
  /** Differ in the target, as they become there. */
  readonly changed: readonly SourceUser[]
  readonly unchanged: readonly SourceUser[]
  /** Changed later in the target: they stay as they are there. */
  readonly newerInTarget: readonly SourceUser[]
  /** Copied before and deleted in the target since: they stay deleted. */
  readonly deletedInTarget: readonly SourceUser[]
  readonly conflicts: readonly Conflict[]
  /** The ids of those of `changed` whose e-mail changes. Another user of the slice may take the old one. */
  readonly emailMoves: readonly string[]
  /** Their sessions and e-mail tokens that the source does not have end in the target. */
  readonly newerInSource: readonly SourceUser[]
  /** The source has emptied their accounts: nothing gives access that the source does not have. */
  readonly emptied: readonly SourceUser[]
  /** Their sessions and e-mail tokens that are new in the source are added. */
  readonly fromSource: readonly SourceUser[]
}

/** The last changes of a user's access in one store: timestamps in milliseconds since the epoch, 0 for never. */
export interface AccessChanges {
  readonly id: string
  /** Disabled or enabled. */
  readonly status: number
  /** Changed or removed. */
  readonly password: number
  readonly roles: number
  /** Changed or confirmed. */
  readonly email: number
  /** Confirmed by a sign-in that emptied the account. */
  readonly emptied: number
  /** Whether the e-mail is confirmed now: 0 or 1. */
  readonly verified: number
}

const lastAt = (name: keyof AccessChanges, condition: string): string =>
  `coalesce(max(at) FILTER (WHERE ${condition}), 0) AS ${name}`

/** Selects {@link AccessChanges} from `users` and their `events`, on both engines. */
export const ACCESS_CHANGES = [
  'users.id',
  lastAt('status', `events.type IN ('user.disabled', 'user.enabled')`),
  lastAt('password', `events.type IN ('password.changed', 'password.reset', 'password.removed')`),
  lastAt('roles', `details LIKE '%"roles"%'`),
  lastAt(
    'email',
    `events.type IN ('email.verified', 'email.changed')
      OR events.type IN ('user.changed', 'user.disabled', 'user.enabled') AND details LIKE '%"email%'`,
  ),
  lastAt('emptied', `events.type = 'email.verified' AND details LIKE '%"emptied"%'`),
  'max(email_verified) AS verified',
].join(', ')

/** The changes of access of a user whom both stores have. */
export interface Access {
  readonly source: AccessChanges
  readonly target: AccessChanges
}

/**
 * Whether one store has emptied the account, and nobody has proved the mailbox in the other one: what was added there since may be a
 * stranger's. The audit log need not have the proof any more, the user has.
 */
export const isEmptiedIn = ({ emptied }: AccessChanges, { email, verified }: AccessChanges): boolean =>
  emptied > email && verified === 0

/** The columns that each change of access is about. A confirmation belongs to its e-mail. */
const ACCESS_COLUMNS = {
  status: ['disabled'],
  password: ['password_hash'],
  roles: ['roles'],
  email: ['email', 'email_verified'],
} as const

type AccessChange = keyof typeof ACCESS_COLUMNS

/** When a store made a change. An emptying also prevails over a password that a stranger has set later in the other store. */
const timeOf = (change: AccessChange, own: AccessChanges, other: AccessChanges): number =>
  change === 'password' && isEmptiedIn(own, other) ? Number.POSITIVE_INFINITY : own[change]

/** The changes that one store has made later than the other one. */
const laterIn = (own: AccessChanges, other: AccessChanges): readonly AccessChange[] =>
  (Object.keys(ACCESS_COLUMNS) as AccessChange[]).filter(
    change => timeOf(change, own, other) > timeOf(change, other, own),
  )

const columnsOf = (user: UserColumns, changes: readonly AccessChange[]): Partial<UserColumns> =>
  Object.fromEntries(changes.flatMap(change => ACCESS_COLUMNS[change].map(column => [column, user[column]])))

/** Versions differ where both stores changed the user. */
const isSame = (user: UserColumns, other: UserColumns): boolean =>
  USER_COLUMNS.every(column => column === 'version' || user[column] === other[column])

/** What a copy does with a user. */
interface Decision {
  readonly user: SourceUser
  /** As the user becomes in the target. */
  readonly merged: SourceUser
  readonly category: 'added' | 'changed' | 'unchanged' | 'newerInTarget' | 'deletedInTarget'
  /** See the properties of {@link SlicePlan}. */
  readonly isNewerInSource?: boolean
  readonly isEmptied?: boolean
  readonly isFromSource?: boolean
}

/**
 * Takes the row from the store that changed it later, and each column of access from the one that changed that later. Otherwise a later
 * rename in one store would undo a disabling in the other one. With equal timestamps the source wins, so that changes without a timestamp
 * are copied too: a password that was rehashed.
 */
const merge = (user: SourceUser, targetUser: UserColumns, { source, target }: Access): Decision => {
  const [here, there] = [laterIn(source, target), laterIn(target, source)]
  const isNewerInTarget = targetUser.updated_at > user.updated_at
  const merged = isNewerInTarget
    ? { ...user, ...targetUser, ...columnsOf(user, here) }
    : { ...user, ...columnsOf(targetUser, there) }
  const decision = {
    isNewerInSource:
      here.some(change => change !== 'roles') ||
      (user.updated_at > targetUser.updated_at && there.length === 0),
    isEmptied: isEmptiedIn(source, target),
    isFromSource: !isNewerInTarget && there.length === 0,
  }
  if (isSame(merged, targetUser))
    return { ...decision, user, merged, category: isNewerInTarget ? 'newerInTarget' : 'unchanged' }
  // Clients of the target may know its version, of other values.
  const version = Math.max(user.version, targetUser.version + 1)
  return { ...decision, user, merged: { ...merged, version }, category: 'changed' }
}

/** @param wasCopied whether an earlier run has copied the user. @param access of a user who differs in the target. */
const decide = (
  user: SourceUser,
  targetUser: UserColumns | undefined,
  wasCopied: boolean,
  access: Access | undefined,
): Decision => {
  if (targetUser !== undefined && access !== undefined) return merge(user, targetUser, access)
  const same = { user, merged: user }
  if (targetUser !== undefined) return { ...same, category: 'unchanged', isFromSource: true }
  return wasCopied
    ? { ...same, category: 'deletedInTarget' }
    : { ...same, category: 'added', isFromSource: true }
}

/** Those of these users who are in the target and differ there. */
export const differing = (
  users: readonly SourceUser[],
  targetUsers: readonly UserColumns[],
): readonly SourceUser[] => {
  const byId = new Map(targetUsers.map(user => [user.id, user]))
  return users.filter(user => !isSame(user, byId.get(user.id) ?? user))
}

/**
 * @param users a slice of the source.
 * @param targetUsers every user of the target who has an id or an e-mail of the slice.
 * @param copiedIds the ids of the slice that an earlier run has copied.
 * @param access of the users who differ in the target, by their ids.
 */
export const planSlice = (
  users: readonly SourceUser[],
  targetUsers: readonly UserColumns[],
  copiedIds: ReadonlySet<string>,
  access: ReadonlyMap<string, Access>,
): SlicePlan => {
  const byId = new Map(targetUsers.map(user => [user.id, user]))
  const holders = new Map(targetUsers.map(({ id, email }) => [email, id]))
  const conflicts: Conflict[] = []
  let decisions = users.map(user =>
    decide(user, byId.get(user.id), copiedIds.has(user.id), access.get(user.id)),
  )
  const usersWhere = (condition: (decision: Decision) => boolean | undefined): readonly SourceUser[] =>
    decisions.filter(condition).map(({ user }) => user)
  const usersOf = (category: Decision['category']) => usersWhere(decision => decision.category === category)
  // A blocked user keeps an e-mail that another user may need, so repeat until no more users are blocked.
  for (;;) {
    const written = decisions.filter(({ category }) => category === 'added' || category === 'changed')
    const changed = written.filter(({ category }) => category === 'changed').map(({ merged }) => merged)
    const emailMoves = new Set(
      changed.filter(({ id, email }) => byId.get(id)?.email !== email).map(({ id }) => id),
    )
    const blocked = new Set<Decision>()
    for (const decision of written) {
      const { user, merged } = decision
      const holder = holders.get(merged.email)
      if (holder === undefined || holder === user.id || emailMoves.has(holder)) continue
      blocked.add(decision)
      conflicts.push({ user, holder })
    }
    if (blocked.size === 0)
      return {
        added: usersOf('added'),
        changed,
        unchanged: usersOf('unchanged'),
        newerInTarget: usersOf('newerInTarget'),
        deletedInTarget: usersOf('deletedInTarget'),
        conflicts,
        emailMoves: [...emailMoves],
        newerInSource: usersWhere(({ isNewerInSource }) => isNewerInSource),
        emptied: usersWhere(({ isEmptied }) => isEmptied),
        fromSource: usersWhere(({ isFromSource }) => isFromSource),
      }
    decisions = decisions.filter(decision => !blocked.has(decision))
  }
}
