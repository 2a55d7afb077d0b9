/** The admin routes and the audit log over HTTP. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { asAdmin, freshEmail, type manualClock } from './build.ts'
import { until } from './until.ts'

/** Milliseconds. */
const EVENT_DEADLINE = 10_000

export const UNKNOWN_ID = '01890000-0000-7000-8000-000000000000'

export interface AuditLine {
  readonly id: string
  readonly at: string
  readonly type: string
  readonly actor: { readonly type: string; readonly id: string | null }
  readonly userId: string
  readonly ip: string | null
  readonly details: Record<string, unknown> | null
}

export const postUser = (
  app: FastifyInstance,
  payload: Record<string, unknown>,
): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'POST', url: '/admin/users', headers: asAdmin, payload })

export interface Created {
  readonly id: string
  readonly email: string
}

/** Creates a user as administrator; without a password no hash is computed. */
export const createUser = async (
  app: FastifyInstance,
  fields: Record<string, unknown> = {},
): Promise<Created> => {
  const response = await postUser(app, { email: freshEmail('created'), ...fields })
  if (response.statusCode !== 201) throw new Error(`${response.statusCode}: ${response.body}`)
  return response.json()
}

export const deleteUser = (app: FastifyInstance, id: string): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin })

/** The factors that administrators see. */
export const factorsOf = async (app: FastifyInstance, id: string): Promise<string[]> =>
  (await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json().factors

export const removeFactors = (
  app: FastifyInstance,
  id: string,
  headers: Record<string, string> = asAdmin,
): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'DELETE', url: `/admin/users/${id}/factors`, headers })

export const impersonate = (
  app: FastifyInstance,
  id: string,
  headers: Record<string, string> = asAdmin,
): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'POST', url: `/admin/users/${id}/impersonate`, headers })

export const getEvents = (
  app: FastifyInstance,
  query: Record<string, string | number> = {},
): Promise<LightMyRequestResponse> => {
  const fields = Object.entries(query).map(([key, value]): [string, string] => [key, String(value)])
  return app.inject({ url: `/admin/events?${new URLSearchParams(fields)}`, headers: asAdmin })
}

/**
 * The types of a user's events by position, oldest first, which PostgreSQL delays while other transactions write.
 * @param last waits for one of these.
 */
export const eventTypes = (
  app: FastifyInstance,
  userId: string,
  last: readonly string[],
): Promise<string[]> =>
  until<string[]>(
    async () => {
      const { results } = (await getEvents(app, { userId, sort: 'at', limit: 100 })).json()
      return results.map(({ type }: AuditLine) => type)
    },
    types => types.some(type => last.includes(type)),
    EVENT_DEADLINE,
  )

/** All events of a filter, page by page; `between` runs after each page. */
export const allEvents = async (
  app: FastifyInstance,
  query: Record<string, string | number> = {},
  between?: () => Promise<unknown>,
): Promise<AuditLine[]> => {
  const events: AuditLine[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const response = await getEvents(app, {
      limit: 100,
      ...query,
      ...(cursor !== '' && { cursor }),
    })
    if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`)
    const page: { results: AuditLine[]; nextCursor: string | null } = response.json()
    events.push(...page.results)
    cursor = page.nextCursor
    await between?.()
  }
  return events
}

export const PROXY = '10.0.0.1'
export const CLIENT = '203.0.113.9'

/**
 * Sends requests of {@link CLIENT} through {@link PROXY}, for an app that trusts it, and returns the events that they add.
 */
export const behindProxy = (app: FastifyInstance, clock: ReturnType<typeof manualClock>) => {
  const newest = async (): Promise<AuditLine[]> => (await getEvents(app, { limit: 100 })).json().results
  return {
    send: (
      method: 'GET' | 'POST' | 'PUT' | 'DELETE',
      url: string,
      payload?: object | string,
      headers?: Record<string, string>,
    ): Promise<LightMyRequestResponse> =>
      app.inject({
        method,
        url,
        remoteAddress: PROXY,
        headers: { 'x-forwarded-for': CLIENT, ...headers },
        ...(payload !== undefined && { payload }),
      }),
    /** Runs the action with a unique timestamp. */
    async added(action: () => Promise<LightMyRequestResponse>) {
      clock.advance(1_000)
      const before = new Set((await newest()).map(({ id }) => id))
      const response = await action()
      return { response, events: (await newest()).filter(({ id }) => !before.has(id)) }
    },
  }
}
