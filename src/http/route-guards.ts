/** The guards of features as hooks: for private routes, which declare them in `config`, and for routes of a host application. */
import type { FastifyContextConfig, FastifyInstance, FastifyRequest } from 'fastify'
import type { MaybePromise } from '#base/maybe-promise'
import type { User } from '#core/users/user'
import { type Guard, inSequence } from './route-access.ts'

/** What a guard knows of a request, whose user is authenticated. */
export interface GuardedRequest {
  readonly user: User
  /** The parameters of the URL: decoded, but not validated. */
  readonly params: unknown
  /** The organization that the token of a client is limited to; `null`: none. */
  readonly tokenOrganization: string | null
}

/**
 * A condition for the requests of private routes: a route declares it in `config`, by the name of the guard. It runs before the body is
 * read, and again after it.
 */
export interface RouteGuard {
  /** @returns why a route cannot declare this, as the end of a sentence; `null` if it can. */
  readonly problemOf: (declared: unknown, url: string) => string | null
  /**
   * Finds what the request has access to. It runs twice for each request, so it must not query the store: see `openCache`.
   * @returns the value of the property of the request that has the name of the guard.
   * @throws {ServiceError} if the request is refused.
   */
  readonly admit: (request: GuardedRequest, declared: unknown) => MaybePromise<unknown>
}

export type RouteGuards = Readonly<Record<string, RouteGuard>>

const slotOf = (name: string): symbol => Symbol.for(`gatehouse.guard.${name}`)

type Slots = Record<symbol, unknown>

/** Adds a property for each guard to requests. It throws on routes without the guard: a bug, not a client error. */
export const decorateWithGuards = (app: FastifyInstance, guards: RouteGuards): void => {
  for (const name of Object.keys(guards)) {
    const slot = slotOf(name)
    app.decorateRequest(slot, null)
    app.decorateRequest(name, {
      getter(this: FastifyRequest) {
        const found = (this as unknown as Slots)[slot]
        if (found === null) throw new Error(`This route does not declare config.${name}`)
        return found
      },
    })
  }
}

export const guardHook = (name: string, guard: RouteGuard, declared: unknown): Guard => {
  const slot = slotOf(name)
  return (request, _reply, done) => {
    const slots = request as unknown as Slots
    // What is refused now must not look admitted, by the first of two runs.
    slots[slot] = null
    const admit = (found: unknown): void => {
      slots[slot] = found
      done()
    }
    try {
      const found = guard.admit(request, declared)
      if (found instanceof Promise) return void found.then(admit, done)
      admit(found)
    } catch (error) {
      done(error as Error)
    }
  }
}

/**
 * @param declared as the `config` of a route of the service.
 * @throws {Error} if it names no guard, or a guard cannot be declared like this.
 */
export const requireGuards = (
  guards: RouteGuards,
  requireUser: Guard,
  declared: FastifyContextConfig,
): Guard => {
  const hooks = Object.entries(declared).map(([name, value]) => {
    const guard = guards[name]
    if (guard === undefined)
      throw new Error(`requireGuards: ${name} is none of the guards ${Object.keys(guards).join(', ')}`)
    // The URL of the route is not known here.
    const problem = guard.problemOf(value, '')
    if (problem !== null) throw new Error(`requireGuards: ${name} ${problem}`)
    return guardHook(name, guard, value)
  })
  return hooks.reduce(inSequence, requireUser)
}
