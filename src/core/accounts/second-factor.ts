/** The code that some users send besides their password (docs/design.md, "Second factors"). */
import { ServiceError } from '#base/errors'
import { needsCode } from '../users/factors.ts'
import type { User } from '../users/user.ts'

export interface SecondFactor {
  /**
   * Uses up a code of the user's authenticator app, whose wrong codes are throttled, or a recovery code. @returns whether it was right.
   * @throws {ServiceError} `tooManyRequests`, `codesUnavailable`
   */
  verify(user: User, code: string, ip: string | null): Promise<boolean>
}

/** The code of one request. It is verified once: after that it is used up, and the request may be repeated inside. */
export class PresentedCode {
  readonly #secondFactor: SecondFactor
  readonly #code: string | undefined
  readonly #ip: string | null
  #acceptedFor: string | null = null

  constructor(secondFactor: SecondFactor, code: string | undefined, ip: string | null) {
    this.#secondFactor = secondFactor
    this.#code = code
    this.#ip = ip
  }

  /**
   * Must be called after the password, or another proof, was verified: the error reveals the second factor. @returns whether a code was sent.
   * @throws {ServiceError} `secondFactorRequired`, `wrongSecondFactor`; errors of {@link SecondFactor.verify}
   */
  async require(user: User): Promise<boolean> {
    if (!needsCode(user)) return false
    if (this.#acceptedFor === user.id) return true
    if (this.#code === undefined) throw new ServiceError('secondFactorRequired')
    if (!(await this.#secondFactor.verify(user, this.#code, this.#ip)))
      throw new ServiceError('wrongSecondFactor')
    this.#acceptedFor = user.id
    return true
  }
}
