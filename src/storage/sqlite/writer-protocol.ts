/** The messages between event loops and the writer thread. */
import type { MessagePort } from 'node:worker_threads'
import type { Write } from '../operations/write.ts'
import type { FileProblem, OpenFiles } from './database-file.ts'
import type { FeatureModule } from './feature-modules.ts'

export interface WriterData extends OpenFiles {
  readonly operations: string
  readonly features: readonly FeatureModule[]
  /** The memory of `InvalidationPublisher`. */
  readonly invalidations: SharedArrayBuffer
}

/** Sent by the thread's owner: the port of a new client; `null` ends the thread. */
export type OwnerMessage = { readonly client: MessagePort } | null

export interface Call {
  readonly operation: string
  readonly args: readonly unknown[]
}

/** The name of an operation that does nothing. Calls run in order, so all earlier calls are settled when this one is. */
export const BARRIER = 'barrier'

/** The name of an operation that does nothing itself. Its batch writes a page (the stamp), which shows whether the disk takes writes. */
export const PROBE = 'probe'

/** An error as data that can cross threads. */
export interface Failure {
  readonly message: string
  /** SQLite's code, or that of an `OperationError`. */
  readonly code: string | undefined
  readonly stack: string | undefined
}

/** The outcome of a call. Invalidations do not come with it: they are published in shared memory. */
export type Outcome = Pick<Write<unknown>, 'result'> | { readonly failure: Failure }

export type WriterMessage =
  /** The outcomes of a batch, in the order of its calls: committed and synced, in the file that is at its path. */
  | { readonly type: 'committed'; readonly outcomes: readonly Outcome[]; readonly hasWritten: boolean }
  /** The batch was rolled back, or committed to a file that a restart would not open. */
  | { readonly type: 'failed'; readonly failure: Failure }
  /** The file's current problem; `null` when there is none. Sent at the start and whenever it changes. */
  | { readonly type: 'fileProblem'; readonly problem: FileProblem | null }
