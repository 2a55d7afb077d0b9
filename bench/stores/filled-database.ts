import type { Session } from '../../src/auth/session.ts'

/** What a store lies in, made and filled by the engine's own file. */
export interface FilledDatabase {
  /** The service's `DATABASE_URL`. */
  readonly url: string
  /** The sessions of those users whose number is a multiple of `every`. */
  readSessions(every: number): Promise<readonly Session[]>
}
