/** Response headers that a route's declaration has to name for the document; src/http/openapi-headers.ts derives the others. */
import type { TSchema } from '@sinclair/typebox'

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
