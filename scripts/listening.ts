import type { ChildProcess } from 'node:child_process'

export interface Listening {
  readonly url: string
  /** All that the process has written so far. */
  output(): string
}

/**
 * Waits until a server says where it listens, as Fastify's log does.
 * @param limit milliseconds until a process that does not listen counts as failed.
 * @param processes how many have to say so: with `WORKERS`, each of them does.
 * @throws {Error} with what it wrote, when it ends first or takes too long.
 */
export const listening = (child: ChildProcess, limit: number, processes = 1): Promise<Listening> => {
  const { promise, resolve, reject } = Promise.withResolvers<Listening>()
  let output = ''
  let listens = false
  const fail = (): void => reject(new Error(`the process does not listen:\n${output}`))
  const timer = setTimeout(fail, limit)
  const collect = (chunk: Buffer): void => {
    output += chunk
    // To look through it copies all of it: a log of megabytes would cost its reader seconds.
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
