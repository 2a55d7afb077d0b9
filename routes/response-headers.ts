/** Response headers that a route's declaration has to name for the document; src/http/openapi-headers.ts derives the others. */
import type { TSchema } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '../src/users/user.ts'
import type { Versions } from '../src/users/users.ts'

const HEADERS = {
  ETag: {
    type: 'string',
    description: 'The version of the user, for `If-Match`; the last request is no part of it',
  },
  Location: { type: 'string', format: 'uri-reference', description: 'Where to go on' },
  'Set-Cookie': { type: 'string', description: 'Hands the access token to browsers, or takes it from them' },
} as const

/** For the document alone: it changes neither what is sent nor how. */
export const withHeaders = <Schema extends TSchema>(
  schema: Schema,
  ...names: (keyof typeof HEADERS)[]
): Schema => ({ ...schema, headers: Object.fromEntries(names.map(name => [name, HEADERS[name]])) })

/** ETags of users: what can be changed of one has the version that is in it. The last request is not part of that. */

export const setETag = (reply: FastifyReply, { version }: User): FastifyReply =>
  reply.header('etag', `"${version}"`)

/** RFC 9110 §8.8.3: a list of tags, which may be weak. */
const TAG = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"/g

/**
 * The versions that a change is meant for (RFC 9110 §13.1.1); `null` for any. Tags that are weak or not ours match none.
 */
export const expectedVersions = ({ headers }: FastifyRequest): Versions => {
  const field = headers['if-match']
  if (field === undefined || field.trim() === '*') return null
  return Array.from(field.matchAll(TAG)).flatMap(([, weak, tag = '']) =>
    weak === undefined && /^[1-9]\d{0,14}$/.test(tag) ? [Number(tag)] : [],
  )
}
