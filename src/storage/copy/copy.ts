/** Copies an SQLite store to a PostgreSQL store (docs/design.md, "Storage"). A repeated run copies what is missing and what has changed. */
import type { StoredFeature } from '../stored-feature.ts'
import type { Conflict, SourceUser } from './plan.ts'
import { Source } from './source.ts'
import { Target } from './target.ts'

/** Users in one transaction. It takes a few hundred milliseconds, during which sign-ups in the target wait. */
const SLICE = 2_000

const MAX_CONFLICT_SAMPLES = 20

const emptyTableReport = () => ({
  added: 0,
  /** Rows that differed in the target and are now as in the source. */
  changed: 0,
  /** Rows that were copied before, were deleted in the source since, and are now deleted in the target too. */
  deleted: 0,
  /** Rows left out because another row of the target has their key, or a value that must be unique. */
  conflicts: 0,
})

export type TableReport = ReturnType<typeof emptyTableReport>

/** It counts what is done, so that it is right when the signal ends a copy. */
const emptyReport = (source: Source) => ({
  /** Users of the source. */
  total: source.count(),
  /** Users who were not in the target. */
  added: 0,
  /** Users who differed in the target and are now as in the source. */
  changed: 0,
  unchanged: 0,
  /** Users who changed later in the target and stay as they are there. */
  newerInTarget: 0,
  /** Users who were copied before, were deleted in the target since, and stay deleted. */
  deletedInTarget: 0,
  /** Users who were copied before, were deleted in the source since, and are now deleted in the target too. */
  deletedInSource: 0,
  /** Users left out because another user of the target has their e-mail. */
  conflicts: 0,
  /** The first conflicts, {@link MAX_CONFLICT_SAMPLES} at most. */
  conflictSamples: [] as Conflict[],
  /** Sessions that were added or have a later timestamp now. */
  sessions: 0,
  /** E-mail tokens that were added. */
  emailTokens: 0,
  /** Events of the audit log that were added. */
  events: 0,
  /** By the name of a feature's table. */
  tables: {} as Record<string, TableReport>,
  /** Features of the source that this version does not have: their tables are left out. */
  unknownFeatures: source.unknownFeatures,
  /** False when the run was stopped before its end. */
  complete: false,
})

type Progress = ReturnType<typeof emptyReport>

export type CopyReport = Readonly<Progress>

export interface CopyOptions {
  readonly features: readonly StoredFeature[]
  /** Stops the run after the current slice. */
  readonly signal: AbortSignal
  /** Called after each slice, with the number of users done. */
  readonly onProgress: (done: number, total: number) => void
}

/**
 * Copies users with their sessions and e-mail tokens.
 * @param copiedEvents the position up to which the audit log was copied.
 * @returns the ids of the users who are left out.
 */
const copyUsers = async (
  source: Source,
  target: Target,
  copiedEvents: number,
  report: Progress,
  { signal, onProgress }: CopyOptions,
): Promise<ReadonlySet<string>> => {
  const write = async (users: readonly SourceUser[]): Promise<readonly Conflict[]> => {
    signal.throwIfAborted()
    const written = await target.write(users)
    for (const name of ['added', 'changed', 'unchanged', 'newerInTarget', 'deletedInTarget'] as const)
      report[name] += written[name].length
    report.sessions += written.sessions
    report.emailTokens += written.emailTokens
    return written.conflicts
  }

  // Deletions come first because they free e-mails that other users may have now. Deletions from before the last copied event
  // are done already: a user who exists again was imported since.
  for (const deleted of source.deletedUsers(copiedEvents, SLICE)) {
    signal.throwIfAborted()
    report.deletedInSource += await target.delete(deleted)
  }
  let done = 0
  const inConflict: SourceUser[] = []
  for (const users of source.slices(SLICE)) {
    for (const { user } of await write(users)) inConflict.push(user)
    done += users.length
    onProgress(done, report.total)
  }
  // A later slice may have freed the e-mail.
  const leftOut = new Set<string>()
  for (let start = 0; start < inConflict.length; start += SLICE)
    for (const conflict of await write(inConflict.slice(start, start + SLICE))) {
      leftOut.add(conflict.user.id)
      report.conflicts += 1
      if (report.conflictSamples.length < MAX_CONFLICT_SAMPLES) report.conflictSamples.push(conflict)
    }
  return leftOut
}

/**
 * Copies the tables of features, after the users. A row of a user who exists in both stores is treated as the user's e-mail tokens
 * are: added if it was never copied, not added again if it was deleted in the target, deleted if it was deleted in the source. It
 * does not matter in which store the user changed later, except that nothing gives access again to an account that the target has emptied.
 * Rows without an owner are treated alike.
 * @param leftOut the ids of users whose rows are not copied.
 */
const copyTables = async (
  source: Source,
  target: Target,
  leftOut: ReadonlySet<string>,
  { tables }: Progress,
  signal: AbortSignal,
): Promise<void> => {
  // A table that refers to another one is declared after it. Deletions come first because they free values that must be unique.
  for (const table of target.tables.toReversed()) {
    signal.throwIfAborted()
    const deleted = await target.deleteMissing(table, SLICE)
    tables[table.name] = { ...emptyTableReport(), deleted }
  }
  for (const table of target.tables)
    for (const rows of source.rows(table)) {
      signal.throwIfAborted()
      const copied = rows.filter(([userId]) => userId === null || !leftOut.has(userId))
      const written = await target.writeRows(table, copied)
      const report = tables[table.name] as TableReport
      for (const name of ['added', 'changed', 'conflicts'] as const) report[name] += written[name]
    }
}

const copyAll = async (
  source: Source,
  target: Target,
  report: Progress,
  options: CopyOptions,
): Promise<void> => {
  const { signal } = options
  const copiedEvents = await target.copiedEvents(source.identity)
  const leftOut = await copyUsers(source, target, copiedEvents, report, options)
  for (const events of source.events(copiedEvents, SLICE)) {
    signal.throwIfAborted()
    report.events += await target.addEvents(source.identity, events)
  }
  await copyTables(source, target, leftOut, report, signal)
  await target.setFactors()
  // Last, when the target has the admin keys of both stores. A session may be newer than the end of its key in the other store.
  if ('admin_keys' in report.tables) await target.revokeOrphanedImpersonations()
  report.complete = true
}

/**
 * Copies users, sessions, e-mail tokens, timestamps, the audit log and the tables of features from an SQLite file, which is only
 * read, to the PostgreSQL database at `url`. When both stores have a user, the later change wins, of access the later one of each kind.
 * Timestamps never move backwards.
 * A row that was copied once and then deleted or revoked in either store stays deleted.
 * @throws {CopyError} for errors that the operator can fix. Slices that were copied before the error stay copied.
 */
export const copy = async (file: string, url: string, options: CopyOptions): Promise<CopyReport> => {
  const source = new Source(file, options.features)
  try {
    const target = await Target.open(url, source, options.features)
    const report = emptyReport(source)
    try {
      await copyAll(source, target, report, options)
    } catch (error) {
      if (error !== options.signal.reason) throw error
    } finally {
      await target.close()
    }
    return report
  } finally {
    source.close()
  }
}
