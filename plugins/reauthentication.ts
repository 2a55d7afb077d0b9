/**
 * Re-authentication (RFC 9470): a private route that declares `config.reauthenticate` needs a proof of identity within the last ten
 * minutes, or one in its body. Routes without the declaration have no hook.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { type Proof, proofRequired } from '#core/accounts/reauthentication'
import { needsCode } from '#core/users/factors'
import { disconnectSignal } from '#http/disconnect-signal'
import { checkDeclarations } from '#http/route-declarations'
import { ProofProperties } from '#http/validation/schemas'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The user must have signed in or re-authenticated within the last ten minutes, or send `password` or `code` in the body. The
     * properties are added to the schema of the body, and handlers do not see it. Private routes without a scope only.
     */
    reauthenticate?: true
  }
}

interface BodySchema {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, unknown>>
}

/** A route without a body may have one with the proof alone. */
const NO_PROPERTIES: BodySchema = { type: ['object', 'null'], properties: {} }

const withProof = (schema: BodySchema): object => ({
  ...schema,
  properties: { ...schema.properties, ...ProofProperties },
  additionalProperties: false,
})

const bodyOf = ({ schema }: RouteOptions): BodySchema =>
  (schema?.body as BodySchema | undefined) ?? NO_PROPERTIES

/** @returns why the proof cannot be added; `null` if it can. A union, for example, would reject every body with the proof. */
const problemOf = ({ properties }: BodySchema): string | null => {
  if (properties === undefined)
    return 'declares reauthenticate, which adds password and code to its body: declare the body as one object with properties'
  return Object.keys(ProofProperties).some(name => Object.hasOwn(properties, name))
    ? 'declares reauthenticate, which adds password and code to its body: rename its own'
    : null
}

/** Takes the proof out of the body, so that no handler stores or logs it. @returns `null` if there is none. */
const takeProof = ({ body, clientAddress: ip }: FastifyRequest, reply: FastifyReply): Proof | null => {
  const presented = (body ?? {}) as { password?: string; code?: string }
  const { password, code } = presented
  delete presented.password
  delete presented.code
  return password === undefined && code === undefined
    ? null
    : { password, code, ip, signal: disconnectSignal(reply) }
}

const reauthentication = async (app: FastifyInstance): Promise<void> => {
  const { reauthentication: service } = app.services
  const { authenticateUser } = app.requestAuthentication
  /** Whether proofs needed a code. Once that has changed, another proof is needed. */
  const codesNeeded = new WeakMap<FastifyRequest, boolean>()
  /** Why the body of a route cannot have the proof. */
  const problems = new WeakMap<object, string>()

  app.addHook('onRoute', route => {
    const { config } = route
    if (config?.reauthenticate === undefined) return
    const body = bodyOf(route)
    const problem = problemOf(body)
    if (problem !== null) return void problems.set(route, problem)
    route.schema = { ...route.schema, body: withProof(body) }
    // The route compares passwords.
    config.rateLimit ??= 'password'
    // First among the hooks of the route. Hashing may take seconds, so the gate checks again, and roles are checked afterwards.
    route.preHandler = [
      async function requireProof(request: FastifyRequest, reply: FastifyReply) {
        codesNeeded.set(request, needsCode(request.user))
        await service.require(request.requirePrincipal(), takeProof(request, reply))
      },
      authenticateUser,
      function rejectOutdatedProof(
        request: FastifyRequest,
        _reply: FastifyReply,
        done: (error?: Error) => void,
      ) {
        const isOutdated = codesNeeded.get(request) !== needsCode(request.user)
        done(isOutdated ? proofRequired() : undefined)
      },
      route.preHandler ?? [],
    ].flat()
  })

  checkDeclarations(app, 'reauthenticate', route => {
    const { config } = route
    if (config?.reauthenticate === undefined) return null
    if (config.gate !== 'user')
      return 'declares reauthenticate, but only private routes know the session of their user'
    if (config.scope !== undefined)
      return 'declares reauthenticate and a scope, but API keys cannot prove who uses them'
    return problems.get(route) ?? null
  })
}

export default fp(reauthentication, {
  name: 'reauthentication',
  dependencies: ['route-guards', 'client-address'],
})
