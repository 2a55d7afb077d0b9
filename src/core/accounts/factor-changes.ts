/** Changes that users make to their own factors: what every kind of factor has in common. */

import { type DeclaredError, ServiceError } from '#base/errors'
import type { Actor } from '../audit-log/event.ts'
import type { SessionRefusal } from '../store/store.ts'

export interface FactorChange {
  readonly endsOthers: boolean
  readonly actor: Actor
}

/**
 * @param errors of the feature, by the refusals of its store.
 * @throws {ServiceError} if the store has refused a change: `signInRequired` for its session or user, else the error of the refusal.
 */
export const assertDone = <Refusal extends string = never>(
  outcome: 'done' | SessionRefusal | Refusal,
  errors: Readonly<Record<NoInfer<Refusal>, DeclaredError>>,
): void => {
  switch (outcome) {
    case 'done':
      return
    case 'sessionNotFound':
    case 'userNotFound':
    case 'accountDisabled':
    case 'passwordChanged':
      throw new ServiceError('signInRequired')
    default:
      throw new ServiceError(errors[outcome])
  }
}
