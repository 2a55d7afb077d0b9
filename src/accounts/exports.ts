import type { KnownUsers } from '../auth/known-users.ts'
import type { Position } from '../users/user-list.ts'
import type { PortableUser, TransferStore } from './transfer-store.ts'

export interface ExportsParts {
  readonly store: TransferStore
  readonly knownUsers: KnownUsers
}

export class Exports {
  readonly #parts: ExportsParts

  constructor(parts: ExportsParts) {
    this.#parts = parts
  }

  /**
   * Every user in order of creation, page by page: whoever is there from the beginning to the end, once, as they are when
   * their page is read.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  async *pages(): AsyncGenerator<readonly PortableUser[]> {
    const { store, knownUsers } = this.#parts
    let after: Position | null = null
    for (;;) {
      const users: readonly PortableUser[] = await store.exportUsers(after)
      const last = users.at(-1)
      if (last === undefined) return
      yield users.map(user => knownUsers.withLatest(user))
      after = { key: last.createdAt, id: last.id }
    }
  }
}
