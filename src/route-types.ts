/**
 * The types of what routes and pages of features use: `app.services`, `app.servePages()`, `request.clientAddress`, `config: { scope }` and
 * others. A host application that writes such routes imports them once: `import type {} from 'gatehouse/route-types'`. Without the import,
 * names such as `app.config` stay free in its types.
 */
import '@fastify/sensible'
import '@fastify/swagger'

export type * from '../plugins/client-address.ts'
export type * from '../plugins/client-gate.ts'
export type * from '../plugins/compression.ts'
export type * from '../plugins/ndjson.ts'
export type * from '../plugins/openapi.ts'
export type * from '../plugins/page-forms.ts'
export type * from '../plugins/pages.ts'
export type * from '../plugins/rate-limits.ts'
export type * from '../plugins/reauthentication.ts'
export type * from '../plugins/route-guards.ts'
export type * from '../plugins/scopes.ts'
export type * from './app.ts'
