/** What the event loop and the writer thread say to each other. */

export interface WriterData {
  readonly file: string
}

export interface Call {
  readonly operation: string
  readonly args: readonly unknown[]
}

/** Errors cross threads as data: a message and SQLite's code. */
export interface Failure {
  readonly message: string
  readonly code: string | undefined
}

export type Outcome = { readonly value: unknown } | { readonly failure: Failure }

/** What the thread is sent: a batch of calls, or `null` to end. */
export type WriterRequest = readonly Call[] | null

export type WriterMessage =
  /** The outcomes of a batch, in the order of its calls; committed and on disk. */
  | { readonly type: 'committed'; readonly outcomes: readonly Outcome[] }
  /** Nothing of the batch was kept. */
  | { readonly type: 'failed'; readonly failure: Failure }
  /** Another process has changed the database. */
  | { readonly type: 'changedElsewhere' }
