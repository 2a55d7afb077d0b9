/** Many responses of a route: to valid and invalid requests, with and without credentials. */
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { UNKNOWN_ID } from './admin-routes.ts'
import { bearer, cookie, freshEmail } from './build.ts'
import type { LiveRoute } from './routes.ts'

type Method = InjectOptions['method'] & string

export interface RightRequest {
  readonly headers: Readonly<Record<string, string>>
  /** A token of the user in question, and of an administrator who impersonates the user. */
  readonly token: string
  readonly impersonation: string
  /** The credentials of a key without the scope of the route. */
  readonly limited: Readonly<Record<string, string>>
  /** In place of the first parameter of the URL. */
  readonly id: string
  /** In place of another one behind it. */
  readonly keyId?: string
  readonly payload?: object | string
  readonly query?: Record<string, string>
}

/** Variations of the valid request, by title. */
const CHANGES: Readonly<Record<string, (right: RightRequest) => Partial<RightRequest>>> = {
  'no credentials': () => ({ headers: {} }),
  'bad credentials': () => ({ headers: { authorization: 'Bearer x', 'x-admin-key': 'x' } }),
  'a key without the scope': ({ limited }) => ({ headers: limited }),
  'an unknown id': () => ({ id: UNKNOWN_ID }),
  'no id': () => ({ id: 'x' }),
  'an unknown query': () => ({ query: { nonsense: '1' } }),
  'no body': () => ({ payload: '' }),
  'a property that no route knows': () => ({ payload: { nonsense: 1 } }),
  'no JSON': ({ headers }) => ({ headers: { ...headers, 'content-type': 'application/json' }, payload: '{' }),
  'another media type': ({ headers }) => ({
    headers: { ...headers, 'content-type': 'text/x' },
    payload: 'x',
  }),
  'too large a body': ({ headers }) => ({
    headers: { ...headers, 'content-type': 'application/json' },
    payload: JSON.stringify({ email: freshEmail(), nonsense: 'x'.repeat(2_000_000) }),
  }),
  'another version': ({ headers }) => ({ headers: { ...headers, 'if-match': '"another"' } }),
  'a cookie from another site': ({ headers: { authorization: _, ...headers }, token }) => ({
    headers: { ...headers, ...cookie(token), 'sec-fetch-site': 'cross-site' },
  }),
  'an impersonation': ({ headers, impersonation }) => ({ headers: { ...headers, ...bearer(impersonation) } }),
  'a browser': ({ headers }) => ({ headers: { ...headers, accept: 'text/html' } }),
}

const send = (
  app: FastifyInstance,
  { method, url }: LiveRoute,
  { headers, id, keyId = '', payload, query }: RightRequest,
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: method as Method,
    url: url.replace(/:\w+/, id).replace(/:\w+/, keyId),
    headers,
    ...(payload === undefined ? {} : { payload }),
    ...(query === undefined ? {} : { query }),
  })

/** @param right makes a new valid request: a response without an error may have used it up. */
export async function* responsesOf(
  app: FastifyInstance,
  route: LiveRoute,
  right: () => Promise<RightRequest>,
): AsyncGenerator<readonly [title: string, response: LightMyRequestResponse]> {
  yield ['right', await send(app, route, await right())]
  let request = await right()
  for (const [title, change] of Object.entries(CHANGES)) {
    const response = await send(app, route, { ...request, ...change(request) })
    yield [title, response]
    if (response.statusCode < 400) request = await right()
  }
}
