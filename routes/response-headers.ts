/** Response headers: their declaration for the OpenAPI document, links to next pages, and ETags of users. */
import type { TSchema } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '#core/users/user'
import type { Versions } from '#core/users/users'
import { parseEntityTags } from '#http/validation/entity-tags'

/** Headers that routes have to declare. plugins/openapi.ts derives the others. */
const HEADERS = {
  ETag: {
    type: 'string',
    description: 'The version of the user, for `If-Match`; it covers neither the last request nor identities',
  },
  Location: {
    type: 'string',
    format: 'uri-reference',
    description: 'URL of the created resource or of the redirect',
  },
  'Set-Cookie': { type: 'string', description: 'Sets or clears the cookie with the access token' },
  'WWW-Authenticate': { type: 'string', description: 'Which proof is missing (RFC 9470 §3)' },
} as const

/** Declares headers in the OpenAPI document. It does not affect the response. */
export const withHeaders = <Schema extends TSchema>(
  schema: Schema,
  ...names: (keyof typeof HEADERS)[]
): Schema => ({ ...schema, headers: Object.fromEntries(names.map(name => [name, HEADERS[name]])) })

/** The version of everything that can be changed, which excludes the last request and identities. */
export const etagOf = ({ version }: User): string => `"${version}"`

export const setETag = (reply: FastifyReply, user: User): FastifyReply => reply.header('etag', etagOf(user))

/** @returns the versions in `If-Match`; `null` for any. Foreign tags match no version. */
export const expectedVersions = ({ headers }: FastifyRequest): Versions => {
  const field = headers['if-match']
  const tags = field === undefined ? null : parseEntityTags(field)
  return tags === null ? null : [...tags].filter(tag => /^[1-9]\d{0,14}$/.test(tag)).map(Number)
}

/** Sets the `Link` to the next page (RFC 8288): the same route and query with the next cursor. */
export const linkToNext = (request: FastifyRequest, reply: FastifyReply, nextCursor: string | null): void => {
  if (nextCursor === null) return
  const parameters = new URLSearchParams(request.url.split('?', 2)[1])
  parameters.set('cursor', nextCursor)
  reply.header('link', `<${request.routeOptions.url}?${parameters}>; rel="next"`)
}
