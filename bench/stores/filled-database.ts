import type { Session } from '../../src/auth/session.ts'

/** A database with users, created by the file of its engine. */
export interface FilledDatabase {
  /** `DATABASE_URL` of the service. */
  readonly url: string
  /** The sessions of those users whose number is a multiple of `every`. */
  readSessions(every: number): Promise<readonly Session[]>
}
