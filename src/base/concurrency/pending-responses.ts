/** Requests over a channel of messages, whose responses are matched by id. */
export class PendingResponses<Response> {
  readonly #pending = new Map<number, (response: Response | null) => void>()
  #lastId = 0

  /**
   * @param send sends the request with its id.
   * @param limit milliseconds to wait.
   * @returns the response; `null` if it does not arrive within `limit`.
   */
  async request(send: (id: number) => void, limit: number): Promise<Response | null> {
    const { promise, resolve } = Promise.withResolvers<Response | null>()
    const timer = setTimeout(() => resolve(null), limit)
    const id = this.#add(resolve)
    send(id)
    const response = await promise
    clearTimeout(timer)
    this.#pending.delete(id)
    return response
  }

  /** Waits without a limit, for a channel that loses no response. @param send sends the request with its id. */
  requestReliably(send: (id: number) => void): Promise<Response> {
    const { promise, resolve } = Promise.withResolvers<Response>()
    send(this.#add(resolve as (response: Response | null) => void))
    return promise
  }

  receive(id: number, response: Response): void {
    this.#pending.get(id)?.(response)
    this.#pending.delete(id)
  }

  #add(resolve: (response: Response | null) => void): number {
    this.#lastId += 1
    this.#pending.set(this.#lastId, resolve)
    return this.#lastId
  }
}
