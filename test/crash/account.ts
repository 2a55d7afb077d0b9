/** What the client was told about one account, and what it asked for without hearing an answer. */

/** A field whose last acknowledged value must be there; one that was asked for later may be there instead. */
export interface Known<T> {
  acknowledged: T
  /** Sent, not answered; `undefined` when nothing is under way. */
  pending: T | undefined
}

export interface Account {
  readonly email: string
  readonly password: string
  /** Known from the sign-up's answer; `null` when the process died while it was being read. */
  id: string | null
  token: string | null
  readonly firstName: Known<string>
  readonly disabled: Known<boolean>
}

/** The value that a restarted server shows is the acknowledged one or the one that was under way. */
export const fits = <T>({ acknowledged, pending }: Known<T>, value: unknown): boolean =>
  value === acknowledged || (pending !== undefined && value === pending)

/** From now on, what was seen after the restart has to stay. */
export const settle = <T>(known: Known<T>, value: T): void => {
  known.acknowledged = value
  known.pending = undefined
}
