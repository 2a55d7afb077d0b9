/** What the routes that clients call have in common: forms, errors in the shape of the RFCs, and responses that no cache keeps. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { PROOF_HEADER } from '#core/auth/dpop'
import type { ClientParameters } from '#features/oauth/client-authentication'
import { oauthMembers } from '#features/oauth/oauth-errors'
import type { PresentedProof } from '#features/oauth/possession'

/** Makes the routes of this scope endpoints of the authorization server. */
export const serveClients = (app: FastifyInstance): void => {
  app.acceptForms({ isOnly: true, repeated: ['resource'] })
  app.extendErrors(oauthMembers)
  app.addHook('onSend', async (_request, reply) => {
    // RFC 6749 §5.1
    reply.headers({ 'cache-control': 'no-store', pragma: 'no-cache' })
  })
}

/** The proof of possession of a request. @param path of the endpoint, below PUBLIC_URL. */
export const proofOf = ({ headers }: FastifyRequest, path: string): PresentedProof => ({
  text: headers[PROOF_HEADER] as string | undefined,
  path,
})

/** What authenticates the client of a request. */
export const clientRequestOf = <Parameters extends ClientParameters>(
  { headers, clientNetwork }: FastifyRequest,
  parameters: Parameters,
) => ({ authorization: headers.authorization, parameters, network: clientNetwork })
