/** What the primary and its workers send each other, besides metrics. */

/** To a worker: stop. */
export const STOP = 'stop'

/** From a worker that listens. */
export interface Listening {
  readonly listening: number
}

/** From a worker that cannot start. */
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
