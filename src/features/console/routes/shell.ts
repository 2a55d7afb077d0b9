/** What all pages of the console do: read the API with the admin key of the session, and send documents with the menu. */
import { type TObject, Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { asciiTrim } from '#base/ascii'
import { type ErrorDefinition, errorBody, type FieldErrors, ServiceError } from '#base/errors'
import { missingScopes } from '#core/auth/admin-key'
import { needsCode } from '#core/users/factors'
import { disconnectSignal } from '#http/disconnect-signal'
import type { ApiStream, StreamCall } from '#http/pages/api-calls'
import type {
  ApiCall,
  ApiResponse,
  ConsoleContext,
  ConsoleInput,
  ConsoleTable,
  Html,
  Page,
  PageContext,
  Text,
} from '#http/pages/feature-pages'
import type { ErrorTexts } from '#http/pages/messages'
import { adminKeyOf } from '#routes/request-context'
import { FormText, InputId, Strict } from '#routes/schemas'
import type { ConsoleModules } from '../console-modules.ts'
import { isSameKey } from '../console-sessions.ts'
import { ERRORS } from '../definitions.ts'
import { framed, type Holder } from '../frame.ts'
import { failureBody, type Values } from '../render.ts'
import { signInFailedPage } from '../sign-in-page.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The admin key of the console's session, on its pages. */
    consoleKey: string
  }
}

interface Document {
  readonly title: (context: ConsoleContext) => string
  readonly body: (context: ConsoleContext) => Html
  /** The path of the page in the menu. */
  readonly current?: string
  readonly isForm?: boolean
  readonly errors?: FieldErrors
  /** HTML that is sent as it comes, in the place of `ARRIVING`. */
  readonly arriving?: (context: ConsoleContext) => AsyncIterable<Html>
}

/** The response of the API with an error, for what the console refuses itself. */
export const refusedBy = ({ status, field, message }: ErrorDefinition): ApiResponse => ({
  status,
  headers: {},
  body: null,
  ...errorBody(field, message),
})

/** The name of a root key, which is that of its setting. */
const ROOT_KEY = 'ADMIN_KEY'

const holderOf = (request: FastifyRequest): Holder => ({
  name: adminKeyOf(request).name ?? ROOT_KEY,
  isKey: adminKeyOf(request).administrator === undefined,
})

/** How an administrator proves the identity again. `none`: the administrator has done so recently; `signIn`: only a sign-in does. */
export type ProofKind = 'key' | 'code' | 'none' | 'signIn'

export class Shell {
  readonly #app: FastifyInstance
  readonly #modules: ConsoleModules
  /** The errors of the pages and of the console, by language. */
  readonly #errorTexts = new Map<string, ErrorTexts>()
  /** What pages say once, by the name in the notice. */
  readonly #notices = new Map<string, Text>()

  constructor(app: FastifyInstance, modules: ConsoleModules) {
    this.#app = app
    this.#modules = modules
  }

  send(request: FastifyRequest, reply: FastifyReply, document: Document): Promise<FastifyReply> {
    return reply.sendPage((page: PageContext) => {
      const context = this.#contextOf(request, page)
      return this.#framed(request, context, document)
    })
  }

  #framed(request: FastifyRequest, context: ConsoleContext, document: Document): Page {
    const { title, body, current, isForm = false, errors = {}, arriving } = document
    const page = framed(context, {
      title: title(context),
      body: body(context),
      pages: this.#modules.pages,
      ...(current !== undefined && { current }),
      holder: holderOf(request),
      isForm,
      hasErrors: Object.keys(errors).length > 0,
    })
    return arriving === undefined ? page : { ...page, arriving: arriving(context) }
  }

  #contextOf(request: FastifyRequest, page: PageContext): ConsoleContext {
    const { words, errorTexts } = this.#modules
    const language = page.language === 'de' ? 'de' : 'en'
    const say = (text: Text): string => text[language]
    const errors =
      this.#errorTexts.get(page.language) ?? new Map([...page.errorTexts, ...errorTexts[language]])
    this.#errorTexts.set(page.language, errors)
    return {
      ...page,
      errorTexts: errors,
      say,
      can: scope => this.may(request, scope),
      word: value => {
        const text = Object.hasOwn(words, value) ? words[value] : undefined
        return text === undefined ? value : say(text)
      },
    }
  }

  /** Sends a page with the errors of the API. */
  fail(request: FastifyRequest, reply: FastifyReply, response: ApiResponse): Promise<FastifyReply> {
    return this.send(request, reply.relay(response), this.#failure(request, response))
  }

  /** The page of an error. A browser without a session of the console is led to its sign-in. */
  failurePage(
    request: FastifyRequest,
    page: PageContext,
    response: Pick<ApiResponse, 'status' | 'errors'>,
  ): Page {
    if (request.adminKey === null) return signInFailedPage(page, response.errors)
    return this.#framed(request, this.#contextOf(request, page), this.#failure(request, response))
  }

  #failure(request: FastifyRequest, response: Pick<ApiResponse, 'status' | 'errors'>): Document {
    const [path = ''] = request.url.slice(`${this.#app.prefix}/`.length).split(/[/?]/)
    const list = this.#modules.pages.find(page => page.path === path && page.list !== undefined)
    return {
      title: ({ texts }) => texts.failed,
      body: context => failureBody(context, response, list),
      ...(list !== undefined && { current: path }),
      errors: response.errors,
    }
  }

  call(request: FastifyRequest, call: ApiCall): Promise<ApiResponse> {
    return this.#app.callApi(request, { ...call, adminKey: request.consoleKey })
  }

  /** Calls the API for a response that is read while it arrives, until the browser disconnects. */
  stream(
    request: FastifyRequest,
    reply: FastifyReply,
    call: Omit<StreamCall, 'adminKey' | 'signal'>,
  ): Promise<ApiStream> {
    const signal = disconnectSignal(reply)
    return this.#app.streamApi(request, { ...call, adminKey: request.consoleKey, signal })
  }

  /** @param ids in the path. */
  read(request: FastifyRequest, path: string, { id = '', rowId = '' }: Ids = {}): Promise<ApiResponse> {
    const params = { ...(path.includes(':id') && { id }), ...(path.includes(':rowId') && { rowId }) }
    return this.call(request, { method: 'GET', path, params })
  }

  /** The names of what rows refer to, by id, as far as the key may read them. */
  async namesOf(
    request: FastifyRequest,
    { names = [] }: ConsoleTable,
    { status, body }: ApiResponse,
  ): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>()
    if (status >= 400 || names.length === 0) return found
    found.set(adminKeyOf(request).id, holderOf(request).name)
    for (const { scope, api, nameOf } of names) {
      const path = this.may(request, scope) ? api(body.results) : null
      const response = path === null ? null : await this.read(request, path)
      if (response !== null && response.status < 400)
        for (const item of response.body.results) found.set(item.id, nameOf(item))
    }
    return found
  }

  may(request: FastifyRequest, scope: string): boolean {
    return missingScopes(adminKeyOf(request), [scope]).length === 0
  }

  /** A hook of pages that only lead to the API: responds with its 403 before the body is read and validated. */
  needsScope(scope: string): onRequestHookHandler {
    const shell = this
    return function requireScope(request, _reply, done) {
      done(
        shell.may(request, scope)
          ? undefined
          : new ServiceError('scopeRequired', { missingAdminScopes: [scope] }),
      )
    }
  }

  proofOf(request: FastifyRequest): ProofKind {
    const { principal } = request
    if (adminKeyOf(request).administrator === undefined || principal === null) return 'key'
    if (this.#app.services.reauthentication.isRecent(principal)) return 'none'
    return needsCode(principal.cachedUser.user) ? 'code' : 'signIn'
  }

  /** Before what gives access. @returns the error of a proof that is wrong or missing; `null` if there is none. */
  async prove(
    request: FastifyRequest,
    reply: FastifyReply,
    { adminKey = '', code = '' }: Values,
  ): Promise<Pick<ApiResponse, 'status' | 'headers' | 'errors'> | null> {
    try {
      if (this.proofOf(request) === 'key') {
        if (!isSameKey(asciiTrim(adminKey), request.consoleKey)) throw new ServiceError(ERRORS.otherAdminKey)
        return null
      }
      const { clientAddress: ip } = request
      const given = { code: asciiTrim(code), password: undefined, ip, signal: disconnectSignal(reply) }
      await this.#app.services.reauthentication.require(
        request.requirePrincipal(),
        given.code === '' ? null : given,
      )
      return null
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      const { status, headers, field, message } = error
      return { status, headers, errors: { [field]: [message] } }
    }
  }

  addNotice(name: string, text: Text): void {
    this.#notices.set(name, text)
  }

  takeNotice(reply: FastifyReply): (context: ConsoleContext) => string | null {
    const text = this.#notices.get(reply.takeNotice() ?? '')
    return ({ say }) => (text === undefined ? null : say(text))
  }
}

/** A path of the API with parameters that it may have already. */
export const withQuery = (api: string, query: URLSearchParams): string =>
  query.size === 0 ? api : `${api}${api.includes('?') ? '&' : '?'}${query}`

/** The path of a page of a list of the API. @param cursor `undefined` for the first one. */
export const pageOf = (api: string, cursor: string | undefined): string =>
  withQuery(api, new URLSearchParams(cursor === undefined ? {} : { cursor }))

/** What is no JSON stays text, which the API rejects. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** What a browser has entered, in the form that the API reads. `undefined` for nothing. */
export const enteredIn = ({ name, kind, options = [] }: ConsoleInput, values: Values) => {
  if (kind === 'choices') return options.map(([value]) => value).filter(value => `${name}:${value}` in values)
  const text = asciiTrim(values[name] ?? '')
  if (text === '') return undefined
  if (kind === 'json') return parsed(text)
  if (kind === 'lines')
    return text
      .split('\n')
      .map(asciiTrim)
      .filter(line => line !== '')
  return kind === 'day' ? `${text}T00:00:00.000Z` : text
}

const fieldsOf = ({ name, kind, options = [] }: ConsoleInput): readonly string[] =>
  kind === 'choices' ? options.map(([value]) => `${name}:${value}`) : [name]

export const fieldSchemas = (inputs: readonly ConsoleInput[]) =>
  Object.fromEntries(inputs.flatMap(fieldsOf).map(name => [name, Type.Optional(FormText)]))

/** The ids in a URL: of an item, and of a row of a table. */
export interface Ids {
  readonly id?: string
  readonly rowId?: string
}

export const filled = (path: string, { id = '', rowId = '' }: Ids): string =>
  path.replace(':rowId', rowId).replace(':id', id)

export const idsIn = (path: string): TObject =>
  Strict({
    ...(path.includes(':id') && { id: InputId }),
    ...(path.includes(':rowId') && { rowId: InputId }),
  })
