export interface UserMoment {
  /** The store's own number of the user: every active user is written each second, by number at a fourth of the cost. */
  readonly key: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

export interface SessionMoment {
  readonly id: string
  readonly at: number
}

export interface LastRequestStore {
  /** Raises the timestamps of users and sessions to the given ones, never lowers them; who is gone is passed over. */
  noteLastRequests(users: readonly UserMoment[], sessions: readonly SessionMoment[]): Promise<void>
}
