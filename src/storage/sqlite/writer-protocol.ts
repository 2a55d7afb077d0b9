/** The messages between the event loop and the writer thread. */
import type { Write } from '../operations/write.ts'
import type { FileProblem, OpenFiles } from './database-file.ts'
import type { FeatureModule } from './feature-modules.ts'

/** What the thread is started with. */
export interface WriterData extends OpenFiles {
  readonly features: readonly FeatureModule[]
}

export interface Call {
  readonly operation: string
  readonly args: readonly unknown[]
}

/** An error as data that can cross threads. */
export interface Failure {
  readonly message: string
  /** SQLite's code, or that of an `OperationError`. */
  readonly code: string | undefined
  readonly stack: string | undefined
}

/** Without `notifies`: other processes detect the commit. */
export type Outcome = Pick<Write<unknown>, 'result' | 'evicts'> | { readonly failure: Failure }

/** A batch of calls; `null` ends the thread. */
export type WriterRequest = readonly Call[] | null

export type WriterMessage =
  /** The outcomes of a batch, in the order of its calls: committed and synced, in the file that is at its path. */
  | { readonly type: 'committed'; readonly outcomes: readonly Outcome[]; readonly hasWritten: boolean }
  /** The batch was rolled back, or committed to a file that a restart would not open. */
  | { readonly type: 'failed'; readonly failure: Failure }
  /** Another process has changed the database. */
  | { readonly type: 'changedElsewhere' }
  /** The file's current problem; `null` when there is none. Sent at the start and whenever it changes. */
  | { readonly type: 'fileProblem'; readonly problem: FileProblem | null }
