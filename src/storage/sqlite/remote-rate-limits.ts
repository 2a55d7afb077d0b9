/** Rate limits of worker threads, which the first thread counts for all of them, so that a client has one limit. */
import type { MessagePort } from 'node:worker_threads'
import type { OpenRateLimit, RateLimit, RateLimitOptions } from '../../rate-limits/rate-limit.ts'

type Method = keyof RateLimit

interface Request {
  readonly id: number
  readonly options: RateLimitOptions
  readonly method: Method
  readonly args: readonly unknown[]
}

interface Response {
  readonly id: number
  readonly result: unknown
}

/** Runs in the first thread, for each worker. Limits never fail. */
export const serveRateLimits = (port: MessagePort, openRateLimit: OpenRateLimit): void => {
  port.on('message', async ({ id, options, method, args }: Request) => {
    const run = openRateLimit(options)[method] as (...args: readonly unknown[]) => Promise<unknown>
    port.postMessage({ id, result: await run(...args) } satisfies Response)
  })
}

/** Runs in a worker thread. */
export const remoteRateLimits = (port: MessagePort): OpenRateLimit => {
  const pending = new Map<number, (result: unknown) => void>()
  let lastId = 0
  port.on('message', ({ id, result }: Response) => {
    pending.get(id)?.(result)
    pending.delete(id)
  })
  const call = (options: RateLimitOptions, method: Method, args: readonly unknown[]): Promise<unknown> => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    lastId += 1
    pending.set(lastId, resolve)
    port.postMessage({ id: lastId, options, method, args } satisfies Request)
    return promise
  }
  const callsOf =
    (options: RateLimitOptions) =>
    (method: Method) =>
    (...args: readonly unknown[]) =>
      call(options, method, args)
  return options => {
    const calling = callsOf(options)
    return {
      consume: calling('consume') as RateLimit['consume'],
      refund: calling('refund') as RateLimit['refund'],
      used: calling('used') as RateLimit['used'],
      set: calling('set') as RateLimit['set'],
      delete: calling('delete') as RateLimit['delete'],
    }
  }
}
