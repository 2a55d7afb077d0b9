/**
 * Checks at the start that every route declares a scope as its gate requires. The gates (`routes/private/autohooks.ts`,
 * `routes/admin/autohooks.ts`) check the scopes of keys.
 */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { type FieldScopes, fieldScopesProblem, scopeProblem } from '#http/route-access'
import { checkDeclarations } from '#http/route-declarations'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The scope that a key needs for the route. On private routes for API keys, which are not accepted without it; admin routes must
     * declare one.
     */
    scope?: string
    /**
     * The scopes of properties of the body that need another one than `scope`. A key needs the scope of each property that a request
     * has, and only those. Admin routes only.
     */
    fieldScopes?: FieldScopes
  }
}

const scopes = async (app: FastifyInstance): Promise<void> => {
  const { userScopes, adminScopes } = app.services

  checkDeclarations(app, 'scope', ({ config }) => {
    const scope = config?.scope
    if (config?.gate === 'user') return scope === undefined ? null : scopeProblem(userScopes, scope)
    if (config?.gate === undefined)
      return scope === undefined ? null : 'declares a scope, but public routes are open to everybody'
    return scope === undefined
      ? `declares no scope: admin routes need one of ${Object.keys(adminScopes).join(', ')}`
      : scopeProblem(adminScopes, scope)
  })

  checkDeclarations(app, 'fieldScopes', ({ config, schema }) => {
    if (config?.fieldScopes === undefined) return null
    if (config.gate !== 'adminKey') return 'declares scopes of fields, but only admin routes check them'
    return fieldScopesProblem(adminScopes, config.fieldScopes, schema?.body)
  })
}

export default fp(scopes, { name: 'scopes', dependencies: ['authentication'] })
