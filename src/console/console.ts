/** The console (docs/console.md): hosted pages for administrators. They call the API with the admin key that opened the session. */
import { defineFeature } from '../feature.ts'
import { ConsoleSessions } from './console-sessions.ts'
import { parts } from './parts.ts'

export const consoleFeature = defineFeature({
  ...parts,
  checkSettings: ({ CONSOLE }, { encrypts }) =>
    CONSOLE === 'off' || encrypts
      ? []
      : [
          'ENCRYPTION_KEY is needed with PostgreSQL and CONSOLE: every instance has to read the admin keys of sessions',
        ],
  services: {
    /** `null` with `CONSOLE=off`. */
    consoleSessions: ({ keyring: keyringOf, ...deps }) => {
      const keyring = deps.settings.CONSOLE === 'on' ? keyringOf() : null
      return keyring && new ConsoleSessions({ ...deps, keyring })
    },
  },
})
