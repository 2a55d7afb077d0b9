/** Outcomes of sign-ins and sign-ups, counted for metrics. */
import { type ErrorName, ServiceError } from '../errors.ts'
import { Counters } from '../statistics/counters.ts'

/** Errors that have an outcome of their own. */
const BY_ERROR = {
  wrongCredentials: 'wrong_credentials',
  wrongPasskey: 'wrong_credentials',
  wrongEmailCode: 'wrong_credentials',
  secondFactorRequired: 'code_required',
  wrongSecondFactor: 'wrong_code',
  accountDisabled: 'account_disabled',
  emailNotVerified: 'email_not_verified',
  emailTaken: 'email_taken',
  tooManyRequests: 'throttled',
  overloaded: 'overloaded',
  clientClosedRequest: 'cancelled',
} as const satisfies Partial<Record<ErrorName, string>>

type KnownOutcome = (typeof BY_ERROR)[keyof typeof BY_ERROR]

const outcomeOf = (error: unknown): KnownOutcome | undefined =>
  error instanceof ServiceError ? (BY_ERROR as Readonly<Record<string, KnownOutcome>>)[error.code] : undefined

/** Counts each call as `succeeded`, as the outcome of its error, or as `failed`. */
export class Outcomes {
  readonly #counters: Counters<string>
  readonly #known: ReadonlySet<string>

  /** @param known the outcomes of errors that the calls can have. */
  constructor(...known: readonly KnownOutcome[]) {
    this.#known = new Set(known)
    this.#counters = new Counters(['succeeded', ...known, 'failed'])
  }

  get values(): Readonly<Record<string, number>> {
    return this.#counters.values
  }

  /** Counts the error of a call that is not made because of it. @returns the same; `null` if there is none. */
  countRefusal(refusal: ServiceError | null): ServiceError | null {
    if (refusal !== null) this.#addError(refusal)
    return refusal
  }

  /** @throws what `call` throws. */
  async count<Result>(call: () => Promise<Result>): Promise<Result> {
    try {
      const result = await call()
      this.#counters.add('succeeded')
      return result
    } catch (error) {
      this.#addError(error)
      throw error
    }
  }

  #addError(error: unknown): void {
    const outcome = outcomeOf(error)
    this.#counters.add(outcome !== undefined && this.#known.has(outcome) ? outcome : 'failed')
  }
}
