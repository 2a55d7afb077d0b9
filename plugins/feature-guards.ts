/**
 * The guards of features: a private route that declares the name of one in its `config`, such as `organization`, needs what it checks. Its
 * hooks follow those of the user gate, before the body is read and again after it. Other routes have no hook.
 */
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { checkDeclarations } from '#http/route-declarations'
import { guardHook } from '#http/route-guards'

const featureGuards = async (app: FastifyInstance): Promise<void> => {
  for (const [name, guard] of Object.entries(app.services.routeGuards)) {
    const property = name as keyof FastifyContextConfig
    app.addHook('onRoute', route => {
      const declared = route.config?.[property]
      if (declared === undefined) return
      const hook = guardHook(name, guard, declared)
      // As for roles: a user who is refused does not count towards the rate limit of the route.
      route.onRequest = [hook, route.onRequest ?? []].flat()
      route.preHandler = [hook, route.preHandler ?? []].flat()
    })

    checkDeclarations(app, property, ({ config, url }) => {
      const declared = config?.[property]
      if (declared === undefined) return null
      if (config?.gate !== 'user') return `declares ${name}, but only private routes know their user`
      return guard.problemOf(declared, url)
    })
  }
}

export default fp(featureGuards, { name: 'feature-guards', dependencies: ['authentication'] })
