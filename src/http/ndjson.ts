/** A body of newline-delimited JSON, of any length. */
import type { Readable } from 'node:stream'
import { ServiceError } from '../errors.ts'
import { type Line, readLines, type Validate } from '../validation/ndjson.ts'

export const NDJSON = 'application/x-ndjson'

/** What arrives, until `stop`: also a body that stands still ends then. */
async function* chunksOf(body: Readable, stop: AbortSignal): AsyncGenerator<Buffer> {
  // Not destroyed when we stop half-way: the connection still has an answer to carry.
  const chunks = body.iterator({ destroyOnReturn: false })
  for (;;) {
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<Buffer>>()
    const refuse = (): void => reject(new ServiceError('draining'))
    if (stop.aborted) refuse()
    stop.addEventListener('abort', refuse)
    chunks.next().then(resolve, () => reject(new ServiceError('clientGone', { quiet: true })))
    const next = await promise.finally(() => stop.removeEventListener('abort', refuse))
    if (next.done) return
    yield next.value
  }
}

/** A body as routes find it. */
export class NdjsonBody {
  readonly #body: Readable
  readonly #stop: AbortSignal
  #validate: Validate = () => true

  /** @param stop aborted when no more is to be read. */
  constructor(body: Readable, stop: AbortSignal) {
    this.#body = body
    this.#stop = stop
  }

  /** Has every line held against a schema. */
  expect(validate: Validate): void {
    this.#validate = validate
  }

  /**
   * The lines, as {@link readLines} gives them.
   * @throws {ServiceError} `clientGone` when the body ends before its end, `draining`
   */
  [Symbol.asyncIterator](): AsyncGenerator<readonly Line<unknown>[]> {
    return readLines(chunksOf(this.#body, this.#stop), this.#validate)
  }
}
