/** Waits until a child process listens. For tests and the bench. */
import type { ChildProcess } from 'node:child_process'

export interface Listening {
  readonly url: string
  /** The output of the process so far. */
  output(): string
}

/**
 * Waits until a server logs its URL like Fastify.
 * @param limit milliseconds until the start counts as failed.
 * @param processes how many have to log it: with `WORKERS`, each worker does.
 * @throws {Error} with the output, if the process exits first or takes too long.
 */
export const listening = (child: ChildProcess, limit: number, processes = 1): Promise<Listening> => {
  const { promise, resolve, reject } = Promise.withResolvers<Listening>()
  let output = ''
  let listens = false
  const fail = (): void => reject(new Error(`the process does not listen:\n${output}`))
  const timer = setTimeout(fail, limit)
  const collect = (chunk: Buffer): void => {
    output += chunk
    // Searching copies the whole output: with megabytes of log that takes seconds.
    if (listens) return
    const url = [...output.matchAll(/listening at (http:\/\/[^"\s]+)/g)][processes - 1]?.[1]
    if (url === undefined) return
    listens = true
    resolve({ url, output: () => output })
  }
  child.stdout?.on('data', collect)
  child.stderr?.on('data', collect)
  child.once('exit', fail)
  return promise.finally(() => clearTimeout(timer))
}
