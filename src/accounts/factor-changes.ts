/** Changes that users make to their own factors: what every kind of factor has in common. */
import type { Actor } from '../audit-log/event.ts'
import { type ErrorName, ServiceError } from '../errors.ts'
import type { SessionRefusal } from '../storage/stores.ts'

export interface FactorChange {
  /** Whether the user's other sessions end. */
  readonly endsOthers: boolean
  readonly actor: Actor
}

/** @throws {ServiceError} if the store has refused a change: `signInRequired` for its session or user, else the refusal. */
export const assertDone = (outcome: 'done' | SessionRefusal | ErrorName): void => {
  switch (outcome) {
    case 'done':
      return
    case 'sessionNotFound':
    case 'userNotFound':
    case 'accountDisabled':
    case 'passwordChanged':
      throw new ServiceError('signInRequired')
    default:
      throw new ServiceError(outcome)
  }
}
