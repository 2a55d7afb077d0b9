/** Rejects requests that another site may have caused (docs/design.md, "Tokens and sessions"), before they count towards a limit. */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { csrfError, simpleRequestError } from '#http/cross-site-requests'

const csrf = async (app: FastifyInstance): Promise<void> => {
  const { allowedOrigins, corsOrigins } = app.config
  const knownOrigins = [...allowedOrigins, ...corsOrigins]

  app.addHook('onRequest', function rejectCrossSite(request, _reply, done) {
    done(csrfError(request, allowedOrigins) ?? simpleRequestError(request, knownOrigins))
  })
}

export default fp(csrf, { name: 'csrf', dependencies: ['authentication'] })
