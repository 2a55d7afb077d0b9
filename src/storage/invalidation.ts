/** The interface of caches to the store's invalidations. Every cache of what the store contains must implement it. */
export interface InvalidationListener {
  /**
   * Evicts a user who was changed or lost a session, or an admin key that was revoked. Called before the change is acknowledged if it
   * was made through this store. Not called for new users, sessions and keys, as no cache holds them.
   * @param id of the user or of the admin key: ids are unique among all of them.
   */
  invalidate(id: string): void
  /** Evicts everything, because another process has made unknown changes. */
  invalidateAll(): void
  /**
   * Whether changes by other processes are notified from now on. While they are not, nothing may be cached.
   * @param message for the operator: why the store cannot be used and what to do, or that it can be used again.
   */
  setFeedConnected(isConnected: boolean, message?: string): void
  /**
   * Whether notifications may arrive too late. While they do, the cache must be bypassed. Afterwards all of it is valid again,
   * as no notification was missed.
   */
  setFeedLate(isLate: boolean): void
  /** The lease of another process has ended before it confirmed a write that ends access. @param id names the process. */
  leaseLapsed?(id: string): void
  /** The store is closed: nothing is notified from now on, and nothing may be cached. */
  closed(): void
}

/** A listener that passes everything on to each of these. */
export const allListeners = (listeners: readonly InvalidationListener[]): InvalidationListener => ({
  invalidate(id) {
    for (const listener of listeners) listener.invalidate(id)
  },
  invalidateAll() {
    for (const listener of listeners) listener.invalidateAll()
  },
  setFeedConnected(isConnected, message) {
    for (const listener of listeners) listener.setFeedConnected(isConnected, message)
  },
  setFeedLate(isLate) {
    for (const listener of listeners) listener.setFeedLate(isLate)
  },
  closed() {
    for (const listener of listeners) listener.closed()
  },
})
