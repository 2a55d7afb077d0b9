/** How hosted pages call the API of the same service, and what it responds. */
import type { Readable } from 'node:stream'
import type { ErrorBody } from '#base/errors'

/** A call of the API by a hosted page. */
export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the prefix of the service. `:name` is the value of `params`. */
  readonly path: string
  /** Values in the path. One that cannot be a segment of a path, such as `..`, is 400 with its name. */
  readonly params?: Readonly<Record<string, string>>
  /** The JSON body. */
  readonly body?: object
  /** The admin key of a call of an admin route. The cookies of the browser are left out then. */
  readonly adminKey?: string
}

export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>
  /** The JSON body; `null` without one. */
  // biome-ignore lint/suspicious/noExplicitAny: the routes validate their responses by schemas of their own
  readonly body: any
  /** The messages by field; empty if the call has succeeded. */
  readonly errors: ErrorBody['errors']
}

/** A call whose response is read while it arrives. */
export interface StreamCall extends Omit<ApiCall, 'body'> {
  readonly content?: { readonly type: string; readonly bytes: Buffer }
  /** Aborted when nobody reads the response any more. */
  readonly signal: AbortSignal
}

/** `stream` is `null` after an error. */
export interface ApiStream extends Omit<ApiResponse, 'body'> {
  readonly stream: Readable | null
}
