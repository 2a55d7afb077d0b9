/** Rate limits of worker threads, which the first thread counts for all of them, so that a client has one limit. */
import type { MessagePort } from 'node:worker_threads'
import { PendingResponses } from '#base/concurrency/pending-responses'
import type { OpenRateLimit, RateLimit, RateLimitOptions } from '../rate-limit.ts'

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

export const remoteRateLimits = (port: MessagePort): OpenRateLimit => {
  const responses = new PendingResponses<unknown>()
  port.on('message', ({ id, result }: Response) => responses.receive(id, result))
  return options => {
    const remote = <Name extends Method>(method: Name): RateLimit[Name] => {
      const call = (...args: readonly unknown[]) =>
        responses.requestReliably(id => port.postMessage({ id, options, method, args } satisfies Request))
      return call as RateLimit[Name]
    }
    return {
      consume: remote('consume'),
      refund: remote('refund'),
      used: remote('used'),
      set: remote('set'),
      delete: remote('delete'),
    }
  }
}
