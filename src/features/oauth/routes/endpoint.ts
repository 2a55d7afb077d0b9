/** What the routes that clients call have in common: forms, errors in the shape of the RFCs, and responses that no cache keeps. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ClientParameters } from '#features/oauth/client-authentication'
import { oauthMembers } from '#features/oauth/oauth-errors'

/** Makes the routes of this scope endpoints of the authorization server. */
export const serveClients = (app: FastifyInstance): void => {
  app.acceptForms({ isOnly: true, repeated: ['resource'] })
  app.extendErrors(oauthMembers)
  app.addHook('onSend', async (_request, reply) => {
    // RFC 6749 §5.1
    reply.headers({ 'cache-control': 'no-store', pragma: 'no-cache' })
  })
}

/** What authenticates the client of a request. */
export const clientRequestOf = <Parameters extends ClientParameters>(
  { headers, clientNetwork }: FastifyRequest,
  parameters: Parameters,
) => ({ authorization: headers.authorization, parameters, network: clientNetwork })
