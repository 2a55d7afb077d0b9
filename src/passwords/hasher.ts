/** What passwords are hashed and compared with. */
export interface PasswordHasher {
  /**
   * @param signal aborted when nobody waits for the hash any more: it is not computed then, unless it has begun.
   * @returns the hash in PHC form.
   * @throws {ServiceError} `overloaded`, `clientGone`, `draining`
   */
  hash(password: string, signal?: AbortSignal): Promise<string>
  /**
   * Costs the same whether there is a hash to compare with or not, so that the time of an answer does not tell whether
   * an account exists.
   * @throws {ServiceError} `overloaded`, `clientGone`, `draining`
   */
  verify(password: string, encoded: string | null, signal?: AbortSignal): Promise<boolean>
  close(): Promise<void>
}
