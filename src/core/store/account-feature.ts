/** What the store runs of a feature that takes part in sign-ins or removals of users. */
import type { Steps } from '#storage/operations/operation'
import type { StoredFactor, StoredFeature } from '#storage/stored-feature'
import type { AuditEvent } from '../audit-log/event.ts'
import type { ClientTokenQueries } from '../auth/client-tokens.ts'
import type { Factor } from '../users/factors.ts'

/**
 * Checks what proves a sign-in, and uses it up, in the transaction of the sign-in. The user is locked.
 * @param event of the sign-in: with the user, the client and the time.
 * @returns `recorded` if it is not valid, but what was written, such as an event, must be kept.
 */
export type SignInProof = (event: AuditEvent, ...args: never[]) => Steps<'proved' | 'notProved' | 'recorded'>

/**
 * What a feature says of the removal of a user: the name of the error that refuses it; or the ids of other users, and of entities of its own,
 * whose cached state the removal makes stale, with what `userRemoved` of the feature gets after the commit.
 */
export type RemovalPart =
  | { readonly refusal: string }
  | { readonly refusal?: undefined; readonly evicts: readonly string[]; readonly outcome?: unknown }

/** The part of a feature in the removal of a user, in the same transaction. */
export interface UserRemoval {
  /** Locks what the feature locks before users, such as an organization. The user is not locked yet. */
  readonly lock?: (userId: string) => Steps<void>
  /**
   * Runs before the rows of the user are deleted. The user is locked. A removal that users did not ask for themselves must not depend on
   * them: only refuse it if nothing else helps.
   * @param event of the removal.
   * @param by `user`: their own request; `others`: an administrator, the operator, or the owner of a mailbox who never confirmed the account.
   */
  readonly remove: (event: AuditEvent, by: 'user' | 'others') => Steps<RemovalPart>
}

export interface AccountFeature extends StoredFeature {
  readonly factor?: StoredFactor & { readonly name: Factor }
  /** What the sign-in methods of the feature use up: `SignIns` runs them by their name. */
  readonly signInProofs?: Readonly<Record<string, SignInProof>>
  readonly userRemoval?: UserRemoval
  /** How authentication finds what tokens of clients stand for. One feature of a service has it. */
  readonly clientTokens?: ClientTokenQueries
}

/** @returns `null` if no feature has tokens of clients. */
export const clientTokensOf = (features: readonly AccountFeature[]): ClientTokenQueries | null =>
  features.find(({ clientTokens }) => clientTokens !== undefined)?.clientTokens ?? null
