/** Rejects requests that another site may have caused (DESIGN §5). */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { csrfError } from '../src/http/csrf.ts'

const csrf = async (app: FastifyInstance): Promise<void> => {
  const { allowedOrigins } = app.config

  app.addHook('onRequest', function rejectCrossSite(request, _reply, done) {
    done(csrfError(request, allowedOrigins))
  })
}

export default fp(csrf, { name: 'csrf', dependencies: ['authentication'] })
