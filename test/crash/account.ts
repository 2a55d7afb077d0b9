/** What a client knows about one account: acknowledged values, and requests without a response. */

/** A field with its last acknowledged value. A later value that was sent may be stored instead. */
export interface Known<T> {
  acknowledged: T
  /** Sent without a response yet; `undefined` when no request is in flight. */
  pending: T | undefined
}

export interface Account {
  readonly email: string
  readonly password: string
  /** From the response to sign-up; `null` when the process died before it was read. */
  id: string | null
  token: string | null
  readonly firstName: Known<string>
  readonly disabled: Known<boolean>
}

/** Whether a restarted server's value is the acknowledged one or the one in flight. */
export const fits = <T>({ acknowledged, pending }: Known<T>, value: unknown): boolean =>
  value === acknowledged || (pending !== undefined && value === pending)

/** Records a value that was seen after the restart, which must stay. */
export const settle = <T>(known: Known<T>, value: T): void => {
  known.acknowledged = value
  known.pending = undefined
}
