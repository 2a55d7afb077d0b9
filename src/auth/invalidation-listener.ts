/** Who remembers what the store said, and so has to hear of what changes. */
export interface InvalidationListener {
  /**
   * A user was changed, or lost a session; told before the change is acknowledged where it was made through this store.
   * A new user or session changes nothing that anybody remembers.
   */
  userChanged(id: string): void
  /** Somebody else changed something unknown. */
  anyoneChanged(): void
  /**
   * Whether changes that others make are heard of from now on. While they are not, nothing may be remembered.
   * @param problem where the store itself is out of use: what the operator has to know and do.
   */
  listening(isListening: boolean, problem?: string): void
  /**
   * Whether they are heard of, but perhaps too late. Then nothing that is remembered may be relied on; all of it is good again
   * afterwards, as none was missed.
   */
  late(isLate: boolean): void
}
