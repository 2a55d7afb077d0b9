import type { UserCache } from '../auth/user-cache.ts'
import type { Position } from '../users/listing.ts'
import type { BulkUserStore, PortableUser } from './bulk-user-store.ts'

export interface ExportsDeps {
  readonly store: BulkUserStore
  readonly userCache: UserCache
}

export class Exports {
  readonly #parts: ExportsDeps

  constructor(parts: ExportsDeps) {
    this.#parts = parts
  }

  /**
   * Every user in order of creation, page by page: whoever is there from the beginning to the end, once, as they are when
   * their page is read.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  async *pages(): AsyncGenerator<readonly PortableUser[]> {
    const { store, userCache } = this.#parts
    let after: Position | null = null
    for (;;) {
      const users: readonly PortableUser[] = await store.exportUsers(after)
      const last = users.at(-1)
      if (last === undefined) return
      yield users.map(user => userCache.withLatest(user))
      after = { key: last.createdAt, id: last.id }
    }
  }
}
