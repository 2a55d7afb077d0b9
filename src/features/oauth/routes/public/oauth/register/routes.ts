/** Clients that register themselves (RFC 7591). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import { type Actor, anonymous } from '#core/audit-log/event'
import { noStore } from '#feature/no-store'
import { ClientDocument } from '#features/oauth/client-document'
import { ERRORS } from '#features/oauth/definitions'
import { registrationMembers } from '#features/oauth/oauth-errors'
import { ErrorOf } from '#routes/schemas'

const RegisteredClient = Type.Object(
  { client_id: Type.String() },
  {
    title: 'RegisteredClient',
    additionalProperties: true,
    description:
      'With all metadata of the client, and `client_secret` if it has one, which is shown only here',
    examples: [{ client_id: '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70', client_name: 'Fleet Planner' }],
  },
)

const challenge = (parameters: string) => ({ headers: { 'www-authenticate': `Bearer${parameters}` } })

const register: FastifyPluginAsyncTypebox = async app => {
  const { oauth, adminAuthenticator } = app.services
  if (oauth === null) return
  const { registration } = oauth
  app.extendErrors(registrationMembers)
  app.addHook('preSerialization', noStore)

  /** The admin key of a Bearer token. The one place where an admin key is not in `x-admin-key`: RFC 7591 §3 has it here. */
  const keyActor = async ({ headers, clientAddress: ip }: FastifyRequest): Promise<Actor> => {
    const presented = /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
    if (presented === undefined) throw new ServiceError(ERRORS.registrationKeyRequired, challenge(''))
    const key = await adminAuthenticator.authenticate(presented)
    if (key === null)
      throw new ServiceError(ERRORS.registrationKeyRequired, {
        ...challenge(' error="invalid_token"'),
        sampledAs: 'admin-key',
      })
    if (key.scopes?.includes('clients:register') === false)
      throw new ServiceError(
        ERRORS.registrationScopeRequired,
        challenge(' error="insufficient_scope", scope="clients:register"'),
      )
    return { type: 'adminKey', id: key.id, ip }
  }

  app.post(
    '',
    {
      config: { rateLimit: 'oauth-register' },
      // Before the body is read.
      async onRequest(request) {
        if (registration.mode === 'off') throw new ServiceError(ERRORS.registrationOff)
        if (registration.mode === 'token') await keyActor(request)
      },
      schema: {
        operationId: 'registerClient',
        summary: 'Register a client of its own accord (RFC 7591), if OAUTH_REGISTRATION allows it',
        tags: ['oauth'],
        body: ClientDocument,
        response: {
          201: RegisteredClient,
          401: ErrorOf(ERRORS.registrationKeyRequired),
          403: ErrorOf(ERRORS.registrationOff),
          409: ErrorOf(ERRORS.tooManyClients),
        },
      },
    },
    async (request, reply) => {
      const actor = registration.mode === 'token' ? await keyActor(request) : anonymous(request.clientAddress)
      reply.code(201)
      return registration.register(request.validatedData.body, actor)
    },
  )
}

export default register
