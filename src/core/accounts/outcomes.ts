/** Outcomes of sign-ins and sign-ups, counted for metrics. */
import { type DeclaredError, type ErrorName, ServiceError } from '#base/errors'
import { Counters } from '#base/statistics/counters'

/** Errors that have an outcome of their own. */
const BY_ERROR = {
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

const outcomeOf = (error: ServiceError): string | undefined =>
  (BY_ERROR as Readonly<Record<string, string>>)[error.code]

/** Counts each call as `succeeded`, as the outcome of its error, or as `failed`. */
export class Outcomes {
  readonly #counters: Counters<string>
  readonly #known: ReadonlySet<string>
  /** The code of the error that is counted as `wrong_credentials`. */
  readonly #rejection: string | null

  constructor(known: readonly KnownOutcome[], rejection: string | null = null) {
    this.#known = new Set(rejection === null ? known : ['wrong_credentials', ...known])
    this.#rejection = rejection
    this.#counters = new Counters(['succeeded', ...this.#known, 'failed'])
  }

  static ofSignIns(rejection: ErrorName | DeclaredError): Outcomes {
    const known = Object.values(BY_ERROR).filter(outcome => outcome !== 'email_taken')
    return new Outcomes(known, typeof rejection === 'string' ? rejection : rejection.code)
  }

  get values(): Readonly<Record<string, number>> {
    return this.#counters.values
  }

  /** Counts the error because of which a call is not made, if there is one. @returns the error */
  countRefusal(refusal: ServiceError | null): ServiceError | null {
    if (refusal !== null) this.#addError(refusal)
    return refusal
  }

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
    const outcome = this.#outcomeOf(error)
    this.#counters.add(outcome !== undefined && this.#known.has(outcome) ? outcome : 'failed')
  }

  #outcomeOf(error: unknown): string | undefined {
    if (!(error instanceof ServiceError)) return undefined
    return error.code === this.#rejection ? 'wrong_credentials' : outcomeOf(error)
  }
}
