/** The shapes of the responses of docs/design.md, "Errors" and §4. */
import type { LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { FIELD_NAMES } from '#core/users/fields'

export type Assert = Pick<Test, 'equal' | 'match' | 'ok' | 'strictSame'>

export const ACCOUNT = [
  'createdAt',
  'email',
  'emailVerified',
  'id',
  'lastRequestAt',
  'updatedAt',
  ...FIELD_NAMES,
].sort()
export const ADMIN_USER = [...ACCOUNT, 'disabled', 'factors', 'methods'].sort()
export const PROFILE = ['createdAt', 'firstName', 'id', 'lastName']

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const ISO_8601 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

/** Asserts a view of a user: exactly these properties, a UUIDv7 as id, every timestamp ISO 8601 in UTC with milliseconds. */
export const hasShape = (t: Assert, value: Record<string, unknown>, keys: string[]): void => {
  t.strictSame(Object.keys(value).sort(), keys)
  t.match(value.id, UUID_V7, 'a UUIDv7')
  for (const [key, timestamp] of Object.entries(value))
    if (key.endsWith('At') && timestamp !== null)
      t.match(timestamp, ISO_8601, `${key} is ISO 8601 with milliseconds`)
}

/** Asserts that a response with account data is JSON and uncacheable. */
export const isPrivateJson = (t: Assert, response: LightMyRequestResponse, status: number): void => {
  t.equal(response.statusCode, status, response.body)
  t.match(response.headers['content-type'], /^application\/json/)
  t.equal(response.headers['cache-control'], 'no-store')
}
