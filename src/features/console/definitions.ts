/** The errors, events and settings of the console, which its use cases need. `console.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { type DepsOf, defineErrors, oneOf } from '#feature/declaration'
import { storedConsole } from './stored-console.ts'

export const ERRORS = defineErrors({
  adminKeyWrong: { status: 401, field: 'adminKey', message: 'is not valid' },
  otherAdminKey: { status: 403, field: 'adminKey', message: 'is not the one that you have signed in with' },
})

export const definitions = {
  ...storedConsole,
  errors: ERRORS,
  events: { 'console.signed-in': Type.Object({}) },
  settings: {
    CONSOLE: {
      read: oneOf('off', 'on'),
      default: 'off',
      description: 'Pages for administrators at /console, who sign in with an admin key',
    },
  },
  rateLimits: { console: { points: 10, seconds: 60 } },
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  console: () => import('./console-pages.ts'),
} as const

export type ConsoleDeps = DepsOf<typeof definitions>
