/** The errors and settings of forward authentication, which its use case needs. `feature.ts` declares the feature. */
import { defineErrors, oneOf } from '#feature/declaration'

export const ERRORS = defineErrors({
  unknownScope: { status: 400, field: 'scope', message: 'is not a scope of this service' },
  membershipRequired: { status: 403, message: 'This needs an organization that you are not a member of' },
})

export const definitions = {
  name: 'forward-auth',
  errors: ERRORS,
  settings: {
    FORWARD_AUTH: {
      read: oneOf('off', 'on'),
      default: 'off',
      shown: true,
      description: 'Whether reverse proxies can ask at /forward-auth who sends a request',
    },
  },
} as const
