/** `/console`: signing in with an admin key, and pages that show what the API responds to it. */
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { asciiTrim } from '#base/ascii'
import type { FieldErrors } from '#base/errors'
import type { Principal } from '#core/auth/principal'
import { keyOf, openedBySession, refusalOf, sessionIdIn } from '#features/console/administrators'
import { consoleModulesOf } from '#features/console/console-modules'
import { ERRORS } from '#features/console/definitions'
import { type SignInNotice, signInPage } from '#features/console/sign-in-page'
import { html } from '#http/pages/feature-pages'
import { SIGNED_IN } from '#http/pages/layout'
import { pageOfReturn, returnToPage, withReturn } from '#http/pages/return-links'
import { adminActor } from '#routes/request-context'
import { FormText, linkedPage, pageForm } from '#routes/schemas'
import { addAction, placedActions } from '../../actions.ts'
import { refusedBy, Shell } from '../../shell.ts'
import { addTransfers } from '../../transfers.ts'
import { addItem, addList, addOverview, addStream, addUnknown, STREAM_PATH } from '../../views.ts'

/** The notice of a session that has ended. */
const ENDED = 'console/ended'

const SESSION_COOKIE = 'gatehouse-console'

/** What lets pages of `CORS_ORIGINS` read a response. */
const CORS_HEADERS = [
  'access-control-allow-origin',
  'access-control-allow-credentials',
  'access-control-expose-headers',
]

const consoleRoutes: FastifyPluginAsync = async app => {
  const { consoleSessions: sessions, adminAuthenticator, features, eventSchemas, adminScopes } = app.services
  if (sessions === null) return
  const { publicUrl, hasPages } = app.config
  const { protectedRole, authenticator } = app.services
  const unknown = protectedRole?.scopes.find(scope => !Object.hasOwn(adminScopes, scope))
  if (unknown !== undefined)
    throw new Error(`CONSOLE_SCOPES names ${JSON.stringify(unknown)}, which is no admin scope`)
  // ALLOWED_ORIGINS may act for users, not for administrators: none may read the console, or send its forms.
  app.addHook('onRequest', function hideFromOtherOrigins(_request, reply, done) {
    for (const name of CORS_HEADERS) reply.removeHeader(name)
    done()
  })
  app.decorateRequest('consoleKey', '')
  const { featureSettings } = app.config
  const declared = { eventTypes: Object.keys(eventSchemas), adminScopes, featureSettings }
  const modules = await consoleModulesOf(features, declared)
  const { pages, plots, latestEvents } = modules
  const shell = new Shell(app, modules)
  app.servePages([new URL(publicUrl).origin], (context, response, request) =>
    shell.failurePage(request, context, response),
  )

  const sendSignIn = (
    reply: FastifyReply,
    errors: FieldErrors,
    notice: SignInNotice,
  ): Promise<FastifyReply> =>
    reply.sendPage(context => signInPage(context, errors, notice, protectedRole !== null && hasPages))

  app.get('/sign-in', linkedPage({}), (_request, reply) =>
    sendSignIn(reply, {}, reply.takeNotice() === ENDED ? 'signInAgain' : null),
  )

  const startSession = async (request: FastifyRequest, reply: FastifyReply, opener: string) => {
    const former = request.hostCookie(SESSION_COOKIE)
    if (former !== undefined) await sessions.close(former)
    const secret = await sessions.open(opener, adminActor(request))
    reply.setHostCookie(SESSION_COOKIE, secret, { sameSite: 'strict' })
    const page = pageOfReturn(request.returnTo, publicUrl)?.split('#', 1)[0] ?? ''
    const next = /^console[/?]/.test(page) ? page : 'console'
    return reply.redirectToPage(`${next}${next.includes('?') ? '&' : '?'}${SIGNED_IN}`)
  }

  const SignInForm = pageForm({ adminKey: FormText })

  app.post('/sign-in', { config: { rateLimit: 'console' }, ...SignInForm }, async (request, reply) => {
    const { adminKey } = request.validatedData.body as { adminKey: string }
    const presented = asciiTrim(adminKey)
    const key = await adminAuthenticator.authenticate(presented)
    if (key === null) {
      request.log.warn('a sign-in to the console failed: the admin key is not valid')
      const wrong = refusedBy(ERRORS.adminKeyWrong)
      return sendSignIn(reply.relay(wrong), wrong.errors, null)
    }
    request.adminKey = key
    return startSession(request, reply, presented)
  })

  if (protectedRole !== null)
    app.post(
      '/sign-in/account',
      { config: { rateLimit: 'console' }, ...pageForm({}) },
      async (request, reply) => {
        const { principal } = request
        if (principal === null) return reply.redirectToSignIn(withReturn('console/sign-in', request))
        const refused = refusalOf(protectedRole, principal)
        if (refused !== null) {
          const response = refusedBy(refused)
          return sendSignIn(reply.relay(response), response.errors, null)
        }
        request.adminKey = keyOf(protectedRole, principal)
        return startSession(request, reply, openedBySession(principal.credentialId))
      },
    )

  app.post('/sign-out', pageForm({}), async (request, reply) => {
    const secret = request.hostCookie(SESSION_COOKIE)
    if (secret !== undefined) await sessions.close(secret)
    return reply.clearHostCookie(SESSION_COOKIE).redirectToPage('console/sign-in')
  })

  const isStream = ({ routeOptions }: FastifyRequest): boolean =>
    routeOptions.url === `${app.prefix}${STREAM_PATH}`

  const askToSignIn = (request: FastifyRequest, reply: FastifyReply, hasEnded: boolean) => {
    const { url, method, headers } = request
    if (!hasEnded && method === 'GET' && Object.hasOwn(request.query as object, SIGNED_IN))
      return sendSignIn(reply.code(401), {}, 'signInLost')
    // Below the service, whatever the request line has: a URL of another host (RFC 9112 §3.2.2) leads to the overview.
    const below = url.startsWith('/') ? url.slice(app.prefix.length) : ''
    // Browsers do not send the cookie behind a link of another site. A page that opens itself again gets it.
    if (!hasEnded && method === 'GET' && headers['sec-fetch-site'] === 'cross-site')
      return reply.sendPage(({ texts, root }) => ({
        title: texts.signIn,
        body: html`<p><a href="${root}console${below}">${texts.signIn}</a></p>`,
        refreshTo: `${root}console${below}`,
      }))
    const page =
      method === 'GET' && below !== '' && !isStream(request)
        ? withReturn('console/sign-in', returnToPage(`console${below}`, publicUrl))
        : 'console/sign-in'
    return reply.redirectToPage(page, hasEnded ? ENDED : undefined)
  }

  /** The principal of a session of a user that may administer, if it is the one with the id. */
  const administratorOf = (principal: Principal | null, sessionId: string): Principal | null =>
    principal?.credentialId === sessionId &&
    protectedRole !== null &&
    refusalOf(protectedRole, principal) === null
      ? principal
      : null

  /** Whether the session of a request that began with one still exists, and what has opened it is valid. */
  const isOpen = async (request: FastifyRequest): Promise<boolean> => {
    const opener = await sessions.openerOf(request.hostCookie(SESSION_COOKIE) ?? '', false)
    if (opener === null || request.adminKey === null) return false
    const sessionId = sessionIdIn(opener)
    if (sessionId !== null) {
      const { accessToken } = request
      const principal = accessToken === null ? null : await authenticator.introspect(accessToken)
      return administratorOf(principal, sessionId) !== null
    }
    return (
      adminAuthenticator.isCurrent(request.adminKey) ||
      (await adminAuthenticator.authenticate(opener)) !== null
    )
  }

  /** Lends an administrator a key for the calls of this request. */
  const authenticateAdministrator = (
    request: FastifyRequest,
    reply: FastifyReply,
    sessionId: string,
  ): boolean => {
    const principal = administratorOf(request.principal, sessionId)
    if (principal === null || protectedRole === null) return false
    const key = keyOf(protectedRole, principal)
    const { text, end } = adminAuthenticator.lend(key, () => authenticator.isCurrent(principal))
    reply.raw.once('close', end)
    request.adminKey = key
    request.consoleKey = text
    return true
  }

  /** @returns whether the request has a session that what has opened it still keeps; it has an `adminKey` then. */
  const authenticate = async (
    request: FastifyRequest,
    reply: FastifyReply,
    secret: string,
  ): Promise<boolean> => {
    // Scripts send both by themselves, and browsers open a stream again that has ended.
    const isUse = request.headers['console-refresh'] === undefined && !isStream(request)
    const opener = await sessions.openerOf(secret, isUse)
    if (opener === null) return false
    const sessionId = sessionIdIn(opener)
    if (sessionId !== null) return authenticateAdministrator(request, reply, sessionId)
    request.adminKey = await adminAuthenticator.authenticate(opener)
    request.consoleKey = opener
    return request.adminKey !== null
  }

  /** Leads on from the URL after a sign-in, whose query tells a browser that has not kept the cookie from others. */
  const withoutSignedIn = (
    { url, method }: FastifyRequest,
    reply: FastifyReply,
  ): FastifyReply | undefined => {
    const [path = '', query = ''] = url.slice(app.prefix.length).split('?', 2)
    const left = query.split('&').filter(each => each !== SIGNED_IN)
    if (method !== 'GET' || left.join('&') === query) return undefined
    return reply.redirectToPage(`console${path}${left.length > 0 ? `?${left.join('&')}` : ''}`)
  }

  app.register(async function signedIn(scoped: FastifyInstance) {
    scoped.addHook('onRequest', async (request, reply) => {
      const secret = request.hostCookie(SESSION_COOKIE)
      if (secret === undefined) return askToSignIn(request, reply, false)
      if (await authenticate(request, reply, secret)) return withoutSignedIn(request, reply)
      // The session ends with its key.
      await sessions.close(secret)
      return askToSignIn(request, reply.clearHostCookie(SESSION_COOKIE), true)
    })
    addUnknown(scoped, shell)
    addTransfers(scoped, shell)
    addOverview(scoped, shell, plots, latestEvents)
    addStream(scoped, shell, isOpen)
    for (const page of pages) {
      if (page.list !== undefined) addList(scoped, shell, page, page.list)
      if (page.item !== undefined) addItem(scoped, shell, page, page.item)
      for (const placed of placedActions(page)) addAction(scoped, shell, placed)
    }
  })
}

export default consoleRoutes
