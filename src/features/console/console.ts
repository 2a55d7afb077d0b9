/** The console (docs/console.md): hosted pages for administrators. They call the API with the admin key that opened the session. */
import { defineFeature } from '#feature/declaration'
import { ConsoleSessions } from './console-sessions.ts'
import { definitions } from './definitions.ts'
import { ConsoleHistory } from './history-curves.ts'
import { HistoryRecorder } from './history-recorder.ts'

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))

export const consoleFeature = defineFeature({
  ...definitions,
  checkSettings: ({ CONSOLE, CONSOLE_ROLE = null, CONSOLE_SCOPES = null }, { encrypts }) => [
    ...(CONSOLE === 'off' || encrypts
      ? []
      : [
          'ENCRYPTION_KEY is needed with PostgreSQL and CONSOLE: every instance has to read the admin keys of sessions',
        ]),
    ...((CONSOLE_ROLE === null) === (CONSOLE_SCOPES === null)
      ? []
      : [
          'CONSOLE_ROLE and CONSOLE_SCOPES are needed together: who may sign in to the console, and what they may do',
        ]),
  ],
  protectedRole: ({ CONSOLE_ROLE, CONSOLE_SCOPES }) =>
    CONSOLE_ROLE === null || CONSOLE_SCOPES === null ? null : { role: CONSOLE_ROLE, scopes: CONSOLE_SCOPES },
  services: {
    /** `null` with `CONSOLE=off`. */
    consoleSessions: ({ keyring: keyringOf, ...deps }) => {
      const keyring = deps.settings.CONSOLE === 'on' ? keyringOf() : null
      return keyring && new ConsoleSessions({ ...deps, keyring })
    },
    consoleHistory: ({ store, clock }) => new ConsoleHistory({ store, clock }),
  },
  backgroundTasks: {
    async recordHistory(deps, signal) {
      if (deps.settings.CONSOLE === 'off') await untilAborted(signal)
      else await new HistoryRecorder(deps).run(signal)
    },
  },
})
