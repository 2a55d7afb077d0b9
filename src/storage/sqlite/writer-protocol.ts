/** The messages between the event loop and the writer thread. */
import type { Write } from '../write.ts'
import type { OpenedFile, Problem } from './database-file.ts'

export type WriterData = OpenedFile

export interface Call {
  readonly operation: string
  readonly args: readonly unknown[]
}

/** Errors cross threads as data: a message and SQLite's code. */
export interface Failure {
  readonly message: string
  readonly code: string | undefined
}

export type Outcome = { readonly write: Write<unknown> } | { readonly failure: Failure }

/** The thread receives a batch of calls, or `null` to end. */
export type WriterRequest = readonly Call[] | null

export type WriterMessage =
  /** The outcomes of a batch, in the order of its calls; committed and on disk, in the file at its path. */
  | { readonly type: 'committed'; readonly outcomes: readonly Outcome[]; readonly hasWritten: boolean }
  /** The batch was rolled back, or committed to a file that a restart would not open. */
  | { readonly type: 'failed'; readonly failure: Failure }
  /** Another process has changed the database. */
  | { readonly type: 'changedElsewhere' }
  /** The file's problem from now on, or `null`; sent with every change. */
  | { readonly type: 'file'; readonly problem: Problem | null }
