import type { Session } from '#core/auth/session'
import type { StorageLocation } from '#storage/location'

/** A database with users, created by the file of its engine. */
export interface FilledDatabase {
  readonly location: StorageLocation
  /** The sessions of those users whose number is a multiple of `every`. */
  readSessions(every: number): Promise<readonly Session[]>
}
