/** From the embedded store to the shared one (DESIGN §7). Run again, it copies what is missing and what changed since. */
import type { Conflict, SourceUser } from './plan.ts'
import { Source } from './source.ts'
import { Target } from './target.ts'

/** Users in one transaction: some hundred milliseconds, for which sign-ups in the target wait. */
const SLICE = 2_000

/** Conflicts that are told one by one. */
const MAX_TOLD = 20

export interface CopyReport {
  /** Users of the source. */
  readonly total: number
  /** Users who were not in the target. */
  readonly added: number
  /** Users who were changed in the source since they were copied. */
  readonly changed: number
  readonly unchanged: number
  /** Users who were changed in the target since, and were left as they are. */
  readonly kept: number
  /** Users who were deleted in the target since they were copied, and stay deleted. */
  readonly removed: number
  /** Users who were deleted in the source since they were copied, and now in the target too. */
  readonly deleted: number
  /** Users left out because their e-mail belongs to another user of the target. */
  readonly conflicts: number
  /** Some of the conflicts. */
  readonly told: readonly Conflict[]
  /** Sessions that were added or have a later timestamp now. */
  readonly sessions: number
  /** Links in mails that can still be used and were added. */
  readonly emailTokens: number
  /** Events of the audit log that were added. */
  readonly events: number
  /** Whether it came to the end. */
  readonly complete: boolean
}

export interface CopyOptions {
  /** Ends the copy after the slice that is under way. */
  readonly signal: AbortSignal
  readonly onProgress: (done: number, total: number) => void
}

const copySlices = async (source: Source, target: Target, options: CopyOptions): Promise<CopyReport> => {
  const { signal, onProgress } = options
  const total = source.count()
  const report = {
    ...{ added: 0, changed: 0, unchanged: 0, kept: 0, removed: 0, deleted: 0 },
    ...{ sessions: 0, emailTokens: 0, events: 0 },
  }

  const write = async (users: readonly SourceUser[]): Promise<readonly Conflict[]> => {
    const written = await target.write(users, source)
    for (const name of ['added', 'changed', 'unchanged', 'kept', 'removed'] as const) {
      report[name] += written[name].length
    }
    report.sessions += written.sessions
    report.emailTokens += written.emailTokens
    return written.conflicts
  }

  let done = 0
  let complete = true
  const copiedEvents = await target.copiedEvents(source.identity)
  // First: it frees e-mails that others may have taken since. Deletions of an earlier copy are done: whoever is there again
  // was imported since.
  for (const deleted of source.deletedUsers(copiedEvents, SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    report.deleted += await target.delete(deleted)
  }
  const waiting: number[] = []
  for (const users of source.slices(SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    for (const { user } of await write(users)) waiting.push(user.key)
    done += users.length
    onProgress(done, total)
  }
  // A later slice may have changed who had the e-mail.
  let conflicts = 0
  const told: Conflict[] = []
  for (const users of source.slicesOf(waiting, SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    const found = await write(users)
    conflicts += found.length
    told.push(...found.slice(0, MAX_TOLD - told.length))
  }
  for (const events of source.events(copiedEvents, SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    report.events += await target.addEvents(source.identity, events)
  }
  return { total, ...report, conflicts, told, complete }
}

/**
 * Copies users, sessions, e-mail tokens, timestamps and the audit log from the SQLite file to the PostgreSQL database that `url` names. The
 * file is only read. Where both stores have a user, the later change wins; timestamps never move backwards; what was copied
 * once and then deleted or revoked on either side stays so.
 * @throws {CopyError} what the operator can mend: slices until then stay copied.
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
