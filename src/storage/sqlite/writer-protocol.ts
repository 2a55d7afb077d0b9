/** What the event loop and the writer thread say to each other. */

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

export type Outcome = { readonly value: unknown } | { readonly failure: Failure }

/** What the thread is sent: a batch of calls, or `null` to end. */
export type WriterRequest = readonly Call[] | null

export type WriterMessage =
  /** The outcomes of a batch, in the order of its calls; committed and on disk, in the file at its path. */
  | { readonly type: 'committed'; readonly outcomes: readonly Outcome[]; readonly hasWritten: boolean }
  /** Nothing of the batch was kept, or it was kept where nobody will find it. */
  | { readonly type: 'failed'; readonly failure: Failure }
  /** Another process has changed the database. */
  | { readonly type: 'changedElsewhere' }
  /** What is wrong with the file from now on; told of every change. */
  | { readonly type: 'file'; readonly problem: Problem | null }
