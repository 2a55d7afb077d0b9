/** Reads what providers send: strict where something depends on it, tolerant where nothing does (docs/design.md, "Other providers"). */
import { type HttpClient, HttpRequestError, type HttpResponse } from '#base/http-client/http-client'
import type { Provider } from './provider-settings.ts'

/**
 * Whose mistake a failure is. `broken`: the provider or its settings do not work. `untrusted`: the provider works, and its tokens or claims
 * do not confirm the user. `refused`: what a client can cause, such as a code that was used.
 */
type Failure = 'broken' | 'untrusted' | 'refused'

type Endpoint = 'discovery' | 'keys' | 'token' | 'userInfo'

/** Why a provider confirms nobody. */
export class ProviderError extends Error {
  readonly failure: Failure
  /** For the log: never a token, a claim or other text of the provider, except for the codes of {@link codeOf}. */
  readonly reason: string
  /** `null` if the reason is in no response. */
  readonly endpoint: Endpoint | null

  constructor(failure: Failure, reason: string, endpoint: Endpoint | null = null) {
    super(reason)
    this.failure = failure
    this.reason = reason
    this.endpoint = endpoint
  }
}

export type Given = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Given =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The properties that say something: providers send `null` and blank texts for what they do not know. */
export const presentIn = (given: Given): Given =>
  Object.fromEntries(
    Object.entries(given).filter(
      ([, value]) =>
        value !== null && value !== undefined && !(typeof value === 'string' && value.trim() === ''),
    ),
  )

/** The code of an error, which may be logged: letters only, so that it is no token and no address. */
export const codeOf = (error: unknown): string =>
  typeof error === 'string' && /^[a-z]+(?:_[a-z]+)*$/.test(error) && error.length <= 50
    ? error
    : 'an unknown error'

/** The errors for a code that was used or has expired: RFC 6749 §5.2, GitHub, Slack. */
const STALE_CODE: ReadonlySet<unknown> = new Set([
  'invalid_grant',
  'bad_verification_code',
  'invalid_code',
  'code_already_used',
])

/** What a header field can carry as a Bearer token. */
const ACCESS_TOKEN = /^[\x21-\x7e]+$/

/** Milliseconds for one request to a provider. A callback makes up to five. */
const TIME_LIMIT = 5_000
/** Bytes of one response. */
const MAX_BYTES = 1_048_576

/** The document in a response. @throws {ProviderError} */
const parse = ({ headers, body }: HttpResponse, endpoint: Endpoint): unknown => {
  const { 'content-encoding': coding = 'identity', 'content-type': type = '' } = headers
  if (coding.toLowerCase() !== 'identity') throw new ProviderError('broken', 'compressed', endpoint)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (error) {
    const isHtml = /^text\/html\b/i.test(type)
    const problem = error instanceof SyntaxError ? 'not JSON, or cut' : 'not UTF-8'
    throw new ProviderError('broken', isHtml ? 'HTML instead of JSON' : problem, endpoint)
  }
}

/** @throws {ProviderError} */
const parseObject = (response: HttpResponse, endpoint: Endpoint): Given => {
  const document = parse(response, endpoint)
  if (!isObject(document)) throw new ProviderError('broken', 'not a JSON object', endpoint)
  return document
}

/** The error in a response with a status of the client; `undefined` if it has none. */
const errorIn = (response: HttpResponse): unknown => {
  if (response.status < 400 || response.status > 499) return undefined
  try {
    return parseObject(response, 'token').error
  } catch {
    return undefined
  }
}

/**
 * What the service uses of a token response: the access token and the ID token. The type of the token, its lifetime, its scopes and a
 * refresh token often differ from RFC 6749 §5.1, and nothing depends on them: the access token goes to the provider alone.
 * @throws {ProviderError}
 */
const tokensIn = (response: HttpResponse, { type }: Pick<Provider, 'type'>): object => {
  const isOk = response.status === 200
  const { access_token, id_token, error } = isOk
    ? parseObject(response, 'token')
    : { error: errorIn(response) }
  // GitHub and Slack send errors with 200.
  if (typeof error === 'string' && error !== '' && (typeof access_token !== 'string' || access_token === ''))
    throw new ProviderError(STALE_CODE.has(error) ? 'refused' : 'broken', codeOf(error), 'token')
  if (!isOk) throw new ProviderError('broken', `status ${response.status}`, 'token')
  if (typeof access_token !== 'string' || !ACCESS_TOKEN.test(access_token))
    throw new ProviderError('broken', 'no access_token', 'token')
  const tokens = { access_token, token_type: 'bearer' }
  if (type === 'oauth2') return tokens
  if (typeof id_token !== 'string' || id_token === '')
    throw new ProviderError('untrusted', 'no id_token', 'token')
  return { ...tokens, id_token }
}

/** @throws {ProviderError} */
const keysIn = (response: HttpResponse): object => {
  const { keys } = parseObject(response, 'keys')
  if (!Array.isArray(keys) || !keys.every(isObject)) throw new ProviderError('broken', 'no keys', 'keys')
  return { keys }
}

/** @throws {ProviderError} */
const userInfoIn = (response: HttpResponse): object => {
  const info = parseObject(response, 'userInfo')
  // Slack sends errors with 200.
  if (info.ok === false) throw new ProviderError('broken', codeOf(info.error), 'userInfo')
  return info
}

interface RequestOptions {
  readonly body?: unknown
  readonly headers: Readonly<Record<string, string>>
  readonly method: string
  readonly signal?: AbortSignal
}

const endpointOf = (url: string, { method, headers }: RequestOptions): Endpoint => {
  if (method === 'POST') return 'token'
  if (headers.authorization !== undefined) return 'userInfo'
  return url.endsWith('/.well-known/openid-configuration') ? 'discovery' : 'keys'
}

const isJwt = ({ headers }: HttpResponse): boolean =>
  /^application\/jwt\b/.test(headers['content-type'] ?? '')

/** @throws {ProviderError} */
const documentIn = (response: HttpResponse, endpoint: Endpoint, provider: Provider, url: string): unknown => {
  if (endpoint === 'token') return tokensIn(response, provider)
  if (response.status !== 200) throw new ProviderError('broken', `status ${response.status}`, endpoint)
  if (endpoint === 'discovery') return presentIn(parseObject(response, endpoint))
  if (endpoint === 'keys') return keysIn(response)
  const emails = provider.endpoints?.emails
  return emails !== undefined && url === new URL(emails).href
    ? parse(response, endpoint)
    : userInfoIn(response)
}

/**
 * `fetch` as `openid-client` uses it, by the client that is limited to public addresses, in time and in bytes. Its responses are documents
 * that `openid-client` understands.
 */
export const fetchBy =
  (http: Pick<HttpClient, 'request'>, provider: Provider) =>
  async (url: string, options: RequestOptions): Promise<Response> => {
    const { body, headers, method, signal } = options
    const endpoint = endpointOf(url, options)
    let response: HttpResponse
    try {
      response = await http.request(new URL(url), {
        method: method === 'POST' ? 'POST' : 'GET',
        // Without it a server may choose any coding (RFC 9110 §12.5.3).
        headers: { ...headers, 'accept-encoding': 'identity' },
        body: body === undefined || body === null ? undefined : String(body),
        timeLimit: TIME_LIMIT,
        maxBytes: MAX_BYTES,
        signal,
      })
    } catch (error) {
      if (error instanceof HttpRequestError) throw new ProviderError('broken', error.failure, endpoint)
      throw error
    }
    if (endpoint === 'userInfo' && response.status === 200 && isJwt(response))
      return new Response(response.body.toString('latin1'), {
        headers: { 'content-type': 'application/jwt' },
      })
    return Response.json(documentIn(response, endpoint, provider, url))
  }
