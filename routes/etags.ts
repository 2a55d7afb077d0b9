/** ETags of users: what can be changed of one has the version that is in it. The last request is not part of that. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { User } from '../src/users/user.ts'
import type { Versions } from '../src/users/users.ts'

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
