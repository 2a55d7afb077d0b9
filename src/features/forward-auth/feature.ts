/** Forward authentication, as a feature: a reverse proxy asks who sends each request of another application. */
import { defineFeature } from '#feature/declaration'
import { definitions } from './definitions.ts'
import { ForwardAuth } from './forward-auth.ts'

export const forwardAuth = defineFeature({
  ...definitions,
  module: import.meta.url,
  routes: new URL('routes/', import.meta.url),
  console: () => import('./console-pages.ts'),
  services: {
    /** `null` with `FORWARD_AUTH=off`. */
    forwardAuth: deps => (deps.settings.FORWARD_AUTH === 'on' ? new ForwardAuth(deps) : null),
  },
})
