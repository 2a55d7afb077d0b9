/** Copies an SQLite store to a PostgreSQL store (DESIGN §7). A repeated run copies what is missing and what has changed. */
import type { Conflict, SourceUser } from './plan.ts'
import { Source } from './source.ts'
import { Target } from './target.ts'

/** Users in one transaction. It takes a few hundred milliseconds, during which sign-ups in the target wait. */
const SLICE = 2_000

const MAX_CONFLICT_SAMPLES = 20

export interface CopyReport {
  /** Users of the source. */
  readonly total: number
  /** Users who were not in the target. */
  readonly added: number
  /** Users who differed in the target and are now as in the source. */
  readonly changed: number
  readonly unchanged: number
  /** Users who changed later in the target and stay as they are there. */
  readonly newerInTarget: number
  /** Users who were copied before, were deleted in the target since, and stay deleted. */
  readonly deletedInTarget: number
  /** Users who were copied before, were deleted in the source since, and are now deleted in the target too. */
  readonly deletedInSource: number
  /** Users left out because another user of the target has their e-mail. */
  readonly conflicts: number
  /** The first conflicts, {@link MAX_CONFLICT_SAMPLES} at most. */
  readonly conflictSamples: readonly Conflict[]
  /** Sessions that were added or have a later timestamp now. */
  readonly sessions: number
  /** E-mail tokens that were added. */
  readonly emailTokens: number
  /** Events of the audit log that were added. */
  readonly events: number
  /** False when the run was stopped before its end. */
  readonly complete: boolean
}

export interface CopyOptions {
  /** Stops the run after the current slice. */
  readonly signal: AbortSignal
  /** Called after each slice, with the number of users done. */
  readonly onProgress: (done: number, total: number) => void
}

const copySlices = async (source: Source, target: Target, options: CopyOptions): Promise<CopyReport> => {
  const { signal, onProgress } = options
  const total = source.count()
  const report = {
    ...{ added: 0, changed: 0, unchanged: 0, newerInTarget: 0, deletedInTarget: 0, deletedInSource: 0 },
    ...{ sessions: 0, emailTokens: 0, events: 0 },
  }

  const write = async (users: readonly SourceUser[]): Promise<readonly Conflict[]> => {
    const written = await target.write(users, source)
    for (const name of ['added', 'changed', 'unchanged', 'newerInTarget', 'deletedInTarget'] as const) {
      report[name] += written[name].length
    }
    report.sessions += written.sessions
    report.emailTokens += written.emailTokens
    return written.conflicts
  }

  let done = 0
  let complete = true
  const copiedEvents = await target.copiedEvents(source.identity)
  // Deletions come first because they free e-mails that other users may have now. Deletions from before the last copied event
  // are done already: a user who exists again was imported since.
  for (const deleted of source.deletedUsers(copiedEvents, SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    report.deletedInSource += await target.delete(deleted)
  }
  const conflictingKeys: number[] = []
  for (const users of source.slices(SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    for (const { user } of await write(users)) conflictingKeys.push(user.key)
    done += users.length
    onProgress(done, total)
  }
  // A later slice may have freed the e-mail.
  let conflicts = 0
  const conflictSamples: Conflict[] = []
  for (const users of source.slicesOf(conflictingKeys, SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    const remaining = await write(users)
    conflicts += remaining.length
    conflictSamples.push(...remaining.slice(0, MAX_CONFLICT_SAMPLES - conflictSamples.length))
  }
  for (const events of source.events(copiedEvents, SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    report.events += await target.addEvents(source.identity, events)
  }
  return { total, ...report, conflicts, conflictSamples, complete }
}

/**
 * Copies users, sessions, e-mail tokens, timestamps and the audit log from an SQLite file, which is only read, to the PostgreSQL
 * database at `url`. When both stores have a user, the later change wins. Timestamps never move backwards. A row that was copied
 * once and then deleted or revoked in either store stays deleted.
 * @throws {CopyError} for errors that the operator can fix. Slices that were copied before the error stay copied.
 */
export const copy = async (file: string, url: string, options: CopyOptions): Promise<CopyReport> => {
  const source = new Source(file)
  try {
    const target = await Target.open(url)
    try {
      return await copySlices(source, target, options)
    } finally {
      await target.close()
    }
  } finally {
    source.close()
  }
}
