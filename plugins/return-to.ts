/**
 * Where pages lead back to (`return_to`, docs/pages.md). The parameter stays in the URLs of the pages; what comes back from a mail or a
 * provider has its target in the store (`src/core/return-targets/`). A URL that must not be returned to is left out, with a warning in the log:
 * the page then ends on the service itself.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { RETURN_TO } from '#http/pages/return-links'

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the page leads back to: a URL with an allowed origin; `null`: nowhere. */
    returnTo: string | null
  }
  interface FastifyInstance {
    /** Reads `return_to` of a page's URL. */
    readReturnTo(request: FastifyRequest): void
    /** Replaces it by what is stored for the token of a mailed link, or for a flow. The URL of such a page does not count. */
    loadReturnTo(request: FastifyRequest, secret: string): Promise<void>
  }
}

/** Of a URL that is logged: its origin or its start, never its query. */
const LOGGED_CHARACTERS = 100

const shown = (value: unknown): string => {
  if (typeof value !== 'string') return 'several values'
  return (URL.canParse(value) ? new URL(value).origin : (value.split(/[?#]/, 1)[0] ?? '')).slice(
    0,
    LOGGED_CHARACTERS,
  )
}

const returnTo = async (app: FastifyInstance): Promise<void> => {
  const { returnTargets } = app.services

  app.decorateRequest('returnTo', null)

  app.decorate('readReturnTo', (request: FastifyRequest): void => {
    const value = (request.query as Readonly<Record<string, unknown>>)[RETURN_TO]
    if (value === undefined || value === '') return
    request.returnTo = typeof value === 'string' ? returnTargets.parse(value) : null
    if (request.returnTo !== null) return
    const suppressed = app.logSampler.take('return_to', request.clientNetwork)
    if (suppressed !== null)
      request.log.warn(
        { returnTo: shown(value), suppressed },
        'return_to is ignored: its origin is not in RETURN_ORIGINS, or it is not one absolute URL',
      )
  })

  app.decorate('loadReturnTo', async (request: FastifyRequest, secret: string): Promise<void> => {
    request.returnTo = await returnTargets.find(secret)
  })
}

export default fp(returnTo, { name: 'return-to', dependencies: ['error-handler', 'client-address'] })
