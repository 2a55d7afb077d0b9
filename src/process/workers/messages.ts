/** What the primary and its workers send each other, besides metrics. */

/** Tells a worker to stop. */
export const STOP = 'stop'

/** Sent by a worker once it listens on a port. */
export interface Listening {
  readonly listening: number
}

/** Sent by a worker that cannot start. */
export interface Failure {
  readonly failure: string
}

/** A line of a thread's log. */
export interface LogLine {
  readonly line: string
}

const has = <Key extends string>(message: unknown, key: Key): message is Record<Key, unknown> =>
  typeof message === 'object' && message !== null && key in message

export const isListening = (message: unknown): message is Listening => has(message, 'listening')
export const isFailure = (message: unknown): message is Failure => has(message, 'failure')
export const isLogLine = (message: unknown): message is LogLine => has(message, 'line')
