/** The errors, events and settings of the console, which its use cases need. `console.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { list, type Reader, SettingError } from '#base/settings/readers'
import { INVALID_ROLE, isRole } from '#core/users/roles'
import { type DepsOf, defineErrors, oneOf } from '#feature/declaration'
import { storedConsole } from './stored-console.ts'

export const ERRORS = defineErrors({
  adminKeyWrong: { status: 401, field: 'adminKey', message: 'is not valid' },
  administratorRequired: {
    status: 403,
    message: 'Your account does not administer this service, or you have not signed in with it',
  },
  administratorFactorRequired: {
    status: 403,
    message: 'Add a passkey or an authenticator app to your account, and sign in with it',
  },
  nothingFound: { status: 404, message: 'No user or key is known by this' },
  fileRequired: { status: 400, field: 'file', message: 'must have one to 16 MB' },
  gone: { status: 404, message: 'There is nothing any more that this could be done to' },
  otherAdminKey: { status: 403, field: 'adminKey', message: 'is not the one that you have signed in with' },
})

const role: Reader<string> = value => {
  if (!isRole(value)) throw new SettingError(INVALID_ROLE, value)
  return value
}

export const definitions = {
  ...storedConsole,
  errors: ERRORS,
  events: { 'console.signed-in': Type.Object({}) },
  settings: {
    CONSOLE: {
      read: oneOf('off', 'on'),
      default: 'off',
      shown: true,
      description: 'Pages for administrators at /console, who sign in with an admin key',
    },
    CONSOLE_ROLE: {
      read: role,
      default: null,
      shown: true,
      description:
        'Users with this role sign in to the console with their account and a second factor; needs CONSOLE_SCOPES',
    },
    CONSOLE_SCOPES: {
      read: list,
      default: null,
      shown: true,
      description: 'What they may do: admin scopes with commas between them',
    },
  },
  rateLimits: { console: { points: 10, seconds: 60 } },
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  console: () => import('./console-pages.ts'),
} as const

export type ConsoleDeps = DepsOf<typeof definitions>
