/** Many responses of a route: to its rightful caller and to others, to what it asks for and to what it cannot use. */
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { UNKNOWN_ID } from './admin-routes.ts'
import { bearer, cookie, freshEmail } from './build.ts'
import type { LiveRoute } from './routes.ts'

type Method = InjectOptions['method'] & string

export interface RightRequest {
  readonly headers: Readonly<Record<string, string>>
  /** Of the user whom it is about, and of an administrator in this user's place. */
  readonly token: string
  readonly impersonation: string
  /** In place of `:id`. */
  readonly id: string
  readonly payload?: object | string
  readonly query?: Record<string, string>
}

/** What tells a request from the right one, by title. */
const CHANGES: Readonly<Record<string, (right: RightRequest) => Partial<RightRequest>>> = {
  'no credentials': () => ({ headers: {} }),
  'bad credentials': () => ({ headers: { authorization: 'Bearer x', 'x-admin-key': 'x' } }),
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
  { headers, id, payload, query }: RightRequest,
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: method as Method,
    url: url.replace(':id', id),
    headers,
    ...(payload === undefined ? {} : { payload }),
    ...(query === undefined ? {} : { query }),
  })

/** @param right makes what the route asks for anew, since some answers use it up. */
export async function* responsesOf(
  app: FastifyInstance,
  route: LiveRoute,
  right: () => Promise<RightRequest>,
): AsyncGenerator<readonly [title: string, response: LightMyRequestResponse]> {
  yield ['right', await send(app, route, await right())]
  for (const [title, change] of Object.entries(CHANGES)) {
    const request = await right()
    yield [title, await send(app, route, { ...request, ...change(request) })]
  }
}
