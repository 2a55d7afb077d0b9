/**
 * Hosted pages (docs/design.md, "Hosted pages"): HTML for people, made of responses of the API. Routes of pages call `app.servePages()` in
 * a scope of their own.
 */
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ERRORS } from '#base/errors'
import { checkFilesOf, checkTextFiles } from '#base/text-files'
import type { Languages, TextTree } from '#base/texts'
import { isApiKeyPrincipal } from '#core/auth/principal'
import type { Feature } from '#feature/declaration'
import { allTexts } from '#feature/texts'
import { callApi, streamApi } from '#http/api-calls'
import { crossSiteError } from '#http/cross-site-requests'
import { logError, orDisconnected } from '#http/error-log'
import { errorResponseFor, withErrors } from '#http/error-responses'
import type { ApiStream, StreamCall } from '#http/pages/api-calls'
import { brandOf } from '#http/pages/brand'
import type { ApiCall, ApiResponse, SecuritySection } from '#http/pages/feature-pages'
import type { Html } from '#http/pages/html'
import {
  ARRIVING,
  documentOf,
  type Page,
  type PageContext,
  SIGNED_IN,
  type SignInPart,
} from '#http/pages/layout'
import { errorTextsOf } from '#http/pages/messages'
import { localesOf, returnToPage, withReturn } from '#http/pages/return-links'
import { errorPage } from '#http/pages/signed-out'
import { fontFiles, pageStyle } from '#http/pages/style'
import { CORE_TEXTS } from '#http/pages/texts'
import { namesSeveralUsers } from '#http/request-authentication'
import { type StaticResponse, sendStatic, staticResponse } from '#http/static-responses'
import type { Services } from '../src/services.ts'
import { closeIfIncomplete } from './error-handler.ts'

type FailurePage = (
  context: PageContext,
  response: Pick<ApiResponse, 'status' | 'errors'>,
  request: FastifyRequest,
) => Page

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Makes the routes of this scope pages: forms as bodies, errors as HTML, or as JSON for clients that prefer it.
     * @param formOrigins further origins whose pages may send its forms; by default `ALLOWED_ORIGINS`.
     * @param failurePage shows errors that handlers raise; by default `errorPage`.
     */
    servePages(formOrigins?: readonly string[], failurePage?: FailurePage): void
    /** Calls the API with the session of a page's request. @throws {ServiceError} `draining` */
    callApi(request: FastifyRequest, call: ApiCall): Promise<ApiResponse>
    /** Calls the API for a response that is read while it arrives. @throws {ServiceError} `draining` */
    streamApi(request: FastifyRequest, call: StreamCall): Promise<ApiStream>
    /** What features add to the security page. */
    readonly securitySections: readonly SecuritySection[]
    /** What features add to the pages for sign-in and sign-up. */
    readonly signInParts: readonly SignInPart[]
  }
  interface FastifyReply {
    /** The errors that were relayed; `null` without any. */
    relayedErrors: ApiResponse['errors'] | null
    /** Sends a page in the language of the user who is signed in, else of the browser; after an error was relayed, JSON to clients that prefer it. */
    sendPage(create: (context: PageContext) => Page): Promise<FastifyReply>
    /** Takes over the status of an error of the API, and in any case its cookie and its headers about limits. */
    relay(response: Pick<ApiResponse, 'status' | 'headers' | 'errors'>): FastifyReply
    /** Sends what replaces a page when a call of the API has failed: after 401 the page to sign in, else one with the errors. */
    sendFailure(response: ApiResponse): Promise<FastifyReply>
    /**
     * Redirects to another page.
     * @param path below the service, without a slash at the start.
     * @param notice the name of what the security page says then, once.
     */
    redirectToPage(path: string, notice?: string): FastifyReply
    /**
     * Leads back to the application after a sign-in, else to the security page. Both say so if the browser has not kept its cookie.
     * @param notice what the security page says, once.
     */
    redirectSignedIn(notice?: string): FastifyReply
    /** Clears the notice of a redirect. @returns it, as the browser sent it. */
    takeNotice(): string | undefined
    /** Redirects to the page to sign in, which leads back to another page. @param path below the service, with a query, if any. */
    redirectToSignIn(path: string): FastifyReply
    /** Redirects to the web application, with the errors of the API as `error`; clients that prefer JSON get the error itself. */
    redirectToWebApp(response: ApiResponse): FastifyReply
  }
}

/**
 * What the security page says after a redirect, such as "your password is changed". A parameter of the URL would let anybody make the
 * page say so with a link. The script of the pages sets it too.
 */
const NOTICE_COOKIE = 'PAGE_NOTICE'

/** Seconds. */
const NOTICE_LIFETIME = 60

/** Seconds. Other content of images has another URL; a new version of a font has the same letters. */
const FILE_LIFETIME = 30 * 86_400

/** Browsers, and clients that accept anything, get a page. */
const prefersJson = (request: FastifyRequest): boolean => request.accepts().type(['html', 'json']) === 'json'

/** The languages of a page by preference: those that its URL asks for, that of the user, then those of the browser. */
const preferencesOf = (request: FastifyRequest, publicUrl: string): string[] =>
  [
    ...localesOf(request.query as Readonly<Record<string, unknown>>, request.returnTo, publicUrl),
    request.principal?.cachedUser.user.locale ?? null,
    ...request.accepts().languages(),
  ].filter(tag => tag !== null)

/** Whether the browser has a session that it can end: not whether a bearer token or an API key came with the request. */
const hasSession = ({ principal, accessTokenSource }: FastifyRequest): boolean =>
  principal !== null && accessTokenSource === 'cookie' && !isApiKeyPrincipal(principal)

const RELAYED = ['set-cookie', 'retry-after', 'www-authenticate', 'ratelimit', 'ratelimit-policy'] as const

/**
 * Without inline script or style. A form may redirect to the web application: browsers check redirects too.
 * @param callsApi for pages with scripts of features, which call the API.
 */
const policyOf = ({ webUrl, hasPages }: FastifyInstance['config'], callsApi: boolean): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    ...(callsApi ? ["connect-src 'self'"] : []),
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    `form-action 'self'${hasPages ? '' : ` ${new URL(webUrl).origin}`}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

async function* withArriving({ text }: Html, arriving: AsyncIterable<Html>): AsyncGenerator<string> {
  const [before = '', after = ''] = text.split(ARRIVING.text)
  yield before
  for await (const part of arriving) yield part.text
  yield after
}

const contentOf = (document: Html, { arriving }: Page): string | Readable =>
  arriving === undefined ? document.text : Readable.from(withArriving(document, arriving))

/** Of images of the operator: opened by themselves they are drawings alone. */
const IMAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

const PAGE_SCRIPT = new URL('../src/http/pages/page-script.js', import.meta.url)

/**
 * What features add to the pages, put together by language.
 * @throws {Error} if the module of a feature has no default export, or offers a sign-in method that the feature does not have.
 */
const loadFeaturePages = async (
  { features, signIns }: Services,
  settings: Readonly<Record<string, unknown>>,
  languages: Languages,
) => {
  const load = async ({ name, pages, signInMethods = {} }: Feature) => {
    if (pages === undefined) return []
    const { default: exported } = await pages()
    const loaded = typeof exported === 'function' ? exported(settings) : exported
    if (loaded === undefined) throw new Error(`The pages of the feature ${name} have no default export`)
    const unknown = Object.keys(loaded.signIn ?? {}).find(method => !Object.hasOwn(signInMethods, method))
    if (unknown !== undefined)
      throw new Error(
        `The pages of the feature ${name} offer the sign-in method ${unknown}, which it has not`,
      )
    return [{ ...loaded, feature: name }]
  }
  const pages = (await Promise.all(features.map(load))).flat()
  const errors = Object.assign({}, ERRORS, ...features.map(feature => feature.errors))
  const textsIn = (language: string) => {
    const all: readonly TextTree[] = [
      languages.textsOf(CORE_TEXTS, language),
      ...pages.flatMap(({ texts }) => (texts === undefined ? [] : [languages.textsOf(texts, language)])),
    ]
    const together = (name: 'errors' | 'notices'): Record<string, string> =>
      Object.assign({}, ...all.map(texts => texts[name]))
    return {
      errorTexts: errorTextsOf(errors, together('errors')),
      notices: new Map(Object.entries(together('notices'))),
    }
  }
  const texts = new Map(languages.tags.map(tag => [tag, textsIn(tag)]))
  return {
    textsIn: (language: string) => texts.get(language) ?? textsIn(language),
    sections: pages.flatMap(({ security }) => (security === undefined ? [] : [security])),
    scripts: pages.flatMap(({ feature, script }) =>
      script === undefined ? [] : [{ url: `pages/${feature}.js`, script }],
    ),
    assets: pages.flatMap(({ feature, assets }) =>
      assets === undefined
        ? []
        : [
            { url: `pages/${feature}.js`, type: 'text/javascript', file: assets.script },
            { url: `pages/${feature}.css`, type: 'text/css', file: assets.style },
          ],
    ),
    signInParts: pages.flatMap(({ signIn = {} }) =>
      Object.entries(signIn).flatMap(([method, part]) => (signIns.has(method) ? [part] : [])),
    ),
  }
}

const pages = async (app: FastifyInstance): Promise<void> => {
  const { config } = app
  const { clock, languages } = app.services
  const { brand, files: brandFiles } = brandOf(config.productName, config.brand)
  const featurePages = await loadFeaturePages(app.services, config.featureSettings, languages)
  const { texts: textFiles } = config
  if (textFiles !== null) {
    const all = await allTexts(app.services.features, config.featureSettings)
    checkFilesOf('TEXTS', () => checkTextFiles(textFiles, all))
  }
  const headersOf = (callsApi: boolean) => ({
    'content-security-policy': policyOf(config, callsApi),
    // URLs of pages have tokens: only the origin is sent. Not `no-referrer`, with which the Origin of a form is `null`.
    'referrer-policy': 'strict-origin',
    'x-content-type-options': 'nosniff',
    // For scanners, and browsers that do not know frame-ancestors.
    'x-frame-options': 'DENY',
  })
  const scripts = config.hasPages ? featurePages.scripts : []
  const scriptUrls = scripts.map(({ url }) => url)
  const [headers, headersWithScript] = [headersOf(false), headersOf(true)]

  /** The way from the URL of a request to the service, which a proxy may have below another path. */
  const rootOf = ({ url }: FastifyRequest): string => {
    const slashes = (path = ''): number => path.split('/').length - 1
    const depth = slashes(url.split('?', 1)[0]) - slashes(app.prefix)
    return depth > 1 ? '../'.repeat(depth - 1) : './'
  }

  app.decorate('callApi', (request, call) => callApi(app, request, call))

  app.decorate('streamApi', (request, call) => streamApi(app, request, call))

  app.decorate('securitySections', featurePages.sections)

  app.decorate('signInParts', featurePages.signInParts)

  app.decorateReply('relayedErrors', null)

  app.decorateReply('relay', function relay(this: FastifyReply, { status, headers, errors }) {
    for (const name of RELAYED) if (headers[name] !== undefined) this.header(name, headers[name])
    if (status < 400) return this
    this.relayedErrors = errors
    this.vary('accept')
    return this.code(status)
  })

  app.decorateReply('redirectToPage', function redirectToPage(this: FastifyReply, path, notice) {
    if (notice !== undefined)
      this.setHostCookie(NOTICE_COOKIE, notice, { sameSite: 'strict', maxAge: NOTICE_LIFETIME })
    return this.header('cache-control', 'no-store').redirect(rootOf(this.request) + path, 303)
  })

  app.decorateReply('redirectToSignIn', function redirectToSignIn(this: FastifyReply, path) {
    return this.redirectToPage(withReturn('sign-in', returnToPage(path, config.publicUrl)))
  })

  app.decorateReply('redirectSignedIn', function redirectSignedIn(this: FastifyReply, notice) {
    const { returnTo } = this.request
    // A page of its own: it notices that the browser has not kept the cookie, and a form must not be redirected to the application.
    if (returnTo !== null) return this.redirectToPage(withReturn('sign-in/continue', { returnTo }))
    return this.redirectToPage(`security?${SIGNED_IN}`, notice)
  })

  app.decorateReply('takeNotice', function takeNotice(this: FastifyReply) {
    const notice = this.request.hostCookie(NOTICE_COOKIE)
    if (notice !== undefined) this.clearHostCookie(NOTICE_COOKIE)
    return notice
  })

  const sendRelayedErrors = (reply: FastifyReply): FastifyReply =>
    reply
      .header('cache-control', 'no-store')
      .type('application/json; charset=utf-8')
      .send(JSON.stringify({ errors: reply.relayedErrors }))

  app.decorateReply('redirectToWebApp', function redirectToWebApp(this: FastifyReply, { status, errors }) {
    if (status < 400) return this.redirect(config.webUrl, 303)
    if (prefersJson(this.request)) return sendRelayedErrors(this.header('location', config.webUrl))
    return this.redirect(withErrors(config.webUrl, errors), 303)
  })

  app.decorateReply('sendPage', async function sendPage(this: FastifyReply, create) {
    if (this.relayedErrors !== null && prefersJson(this.request)) return sendRelayedErrors(this)
    const language = languages.preferred(preferencesOf(this.request, config.publicUrl))
    const user =
      config.hasPages && hasSession(this.request) ? (this.request.principal?.cachedUser.user ?? null) : null
    const context = {
      language,
      texts: languages.textsOf(CORE_TEXTS, language),
      textsOf: texts => languages.textsOf(texts, language),
      languages: languages.tags,
      ...featurePages.textsIn(language),
      root: rootOf(this.request),
      product: config.productName,
      brand,
      webUrl: config.webUrl === config.publicUrl ? null : config.webUrl,
      passwordMinLength: config.passwordMinLength,
      now: clock(),
      hasPages: config.hasPages,
      hasSignUpPage: config.hasSignUpPage,
      scripts: scriptUrls,
      hasSession: user !== null,
      user,
      hasSeveralUsers: namesSeveralUsers(this.request),
      noticeCookie: app.hostCookieName(NOTICE_COOKIE),
      returnTo: this.request.returnTo,
    } satisfies PageContext
    const page = create(context)
    this.vary('accept-language')
    const hasScript = (page.hasScripts && scripts.length > 0) || page.assetsOf !== undefined
    return this.headers(hasScript ? headersWithScript : headers)
      .header('cache-control', 'no-store')
      .type('text/html; charset=utf-8')
      .send(contentOf(documentOf(context, page), page))
  })

  app.decorateReply('sendFailure', async function sendFailure(this: FastifyReply, response) {
    if (response.status === 401) return this.redirectToPage(withReturn('sign-in', this.request))
    return this.relay(response).sendPage(context => errorPage(context, response.errors))
  })

  app.decorate('servePages', function servePages(this: FastifyInstance, ...given) {
    const [
      formOrigins = config.allowedOrigins,
      failurePage = (context, { errors }) => errorPage(context, errors),
    ] = given
    this.acceptForms()
    // Also forms of strangers, and of CORS_ORIGINS: otherwise another site could sign a browser in to an account of its own.
    this.addHook('onRequest', function rejectCrossSiteForm(request, _reply, done) {
      done(crossSiteError(request, formOrigins))
    })
    this.addHook('onRequest', function readReturnTo(request, _reply, done) {
      app.readReturnTo(request)
      done()
    })
    // A form without fields has an empty body.
    this.addHook('preValidation', function provideEmptyForm(request, _reply, done) {
      if (request.method === 'POST') request.body ??= {}
      done()
    })
    this.setErrorHandler(async (raised, request, reply) => {
      const error = orDisconnected(raised, reply)
      const response = errorResponseFor(error, config)
      reply.vary('accept')
      if (response.redirectTo !== undefined || prefersJson(request)) throw raised
      logError(error, request, response.status)
      closeIfIncomplete(request, reply)
      return reply
        .code(response.status)
        .headers(response.headers)
        .sendPage(context =>
          failurePage(context, { status: response.status, errors: response.body.errors }, request),
        )
    })
  })

  const serve = (
    url: string,
    response: StaticResponse,
    sentHeaders: Readonly<Record<string, string>> = headers,
  ): void => {
    app.get(url, { schema: { hide: true } }, (request, reply) =>
      sendStatic(response, request, reply.headers(sentHeaders)),
    )
  }
  serve(
    '/pages/style.css',
    staticResponse('text/css; charset=utf-8', () => pageStyle(config.brand.colors)),
  )
  for (const { url, file } of fontFiles())
    serve(
      `/${url}`,
      staticResponse('font/woff2', () => readFileSync(file), FILE_LIFETIME),
    )
  const imageHeaders = { ...headers, 'content-security-policy': IMAGE_POLICY }
  for (const { url, type, content } of brandFiles)
    serve(
      `/${url}`,
      staticResponse(type, () => content, FILE_LIFETIME),
      imageHeaders,
    )
  const [iconFile] = brandFiles
  serve(
    '/favicon.ico',
    staticResponse(iconFile.type, () => iconFile.content),
    imageHeaders,
  )
  const files = [
    { url: 'pages/page-script.js', type: 'text/javascript', file: PAGE_SCRIPT },
    ...scripts.map(({ url, script }) => ({ url, type: 'text/javascript', file: script })),
    ...featurePages.assets,
  ]
  for (const { url, type, file } of files)
    serve(
      `/${url}`,
      staticResponse(`${type}; charset=utf-8`, () => readFileSync(file)),
    )
}

export default fp(pages, {
  name: 'pages',
  dependencies: ['json-body', 'error-handler', 'host-cookies', 'csrf', 'openapi', 'return-to'],
})
