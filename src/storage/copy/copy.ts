/** Copies an SQLite store to a PostgreSQL store (DESIGN §7). A repeated run copies what is missing and what has changed. */
import type { StoredFeature } from '../stored-feature.ts'
import type { Conflict, SourceUser } from './plan.ts'
import { Source } from './source.ts'
import type { CopiedTable } from './table-statements.ts'
import { Target } from './target.ts'

/** Users in one transaction. It takes a few hundred milliseconds, during which sign-ups in the target wait. */
const SLICE = 2_000

const MAX_CONFLICT_SAMPLES = 20

/** The rows of a feature's table. */
export interface TableReport {
  readonly added: number
  /** Rows that differed in the target and are now as in the source. */
  readonly changed: number
  /** Rows that were copied before, were deleted in the source since, and are now deleted in the target too. */
  readonly deleted: number
  /** Rows left out because another row of the target has their key, or a value that must be unique. */
  readonly conflicts: number
}

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
  /** By the name of a feature's table. */
  readonly tables: Readonly<Record<string, TableReport>>
  /** Features of the source that this version does not have: their tables are left out. */
  readonly unknownFeatures: readonly string[]
  /** False when the run was stopped before its end. */
  readonly complete: boolean
}

export interface CopyOptions {
  readonly features: readonly StoredFeature[]
  /** Stops the run after the current slice. */
  readonly signal: AbortSignal
  /** Called after each slice, with the number of users done. */
  readonly onProgress: (done: number, total: number) => void
}

/**
 * Copies the tables of features, after the users. A row of a user who exists in both stores is treated as the user's e-mail tokens
 * are: added if it was never copied, not added again if it was deleted in the target, deleted if it was deleted in the source. It
 * does not matter in which store the user changed later. Rows without an owner are treated alike.
 * @param leftOut the ids of users whose rows are not copied.
 */
const copyTables = async (
  source: Source,
  target: Target,
  described: readonly CopiedTable[],
  leftOut: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Pick<CopyReport, 'tables' | 'complete'>> => {
  const tables: Record<string, TableReport> = {}
  // A table that refers to another one is declared after it. Deletions come first because they free values that must be unique.
  for (const table of described.toReversed()) {
    if (signal.aborted) return { tables, complete: false }
    const deleted = await target.deleteMissing(table, source, SLICE)
    tables[table.name] = { added: 0, changed: 0, deleted, conflicts: 0 }
  }
  for (const table of described) {
    const report = { deleted: tables[table.name]?.deleted ?? 0, added: 0, changed: 0, conflicts: 0 }
    for (const rows of source.rows(table)) {
      if (signal.aborted) return { tables, complete: false }
      const written = await target.writeRows(
        table,
        rows.filter(([userId]) => userId === null || !leftOut.has(userId)),
      )
      for (const name of ['added', 'changed', 'conflicts'] as const) report[name] += written[name]
      tables[table.name] = { ...report }
    }
  }
  return { tables, complete: true }
}

/** Copies the audit log after a position. */
const copyEvents = async (
  source: Source,
  target: Target,
  after: number,
  signal: AbortSignal,
): Promise<Pick<CopyReport, 'events' | 'complete'>> => {
  let added = 0
  for (const events of source.events(after, SLICE)) {
    if (signal.aborted) return { events: added, complete: false }
    added += await target.addEvents(source.identity, events)
  }
  return { events: added, complete: true }
}

/**
 * Copies users with their sessions and e-mail tokens.
 * @param copiedEvents the position up to which the audit log was copied.
 */
const copyUsers = async (source: Source, target: Target, copiedEvents: number, options: CopyOptions) => {
  const { signal, onProgress } = options
  const total = source.count()
  const report = {
    added: 0,
    changed: 0,
    unchanged: 0,
    newerInTarget: 0,
    deletedInTarget: 0,
    deletedInSource: 0,
    sessions: 0,
    emailTokens: 0,
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
  const leftOut = new Set<string>()
  const conflictSamples: Conflict[] = []
  for (const users of source.slicesOf(conflictingKeys, SLICE)) {
    complete &&= !signal.aborted
    if (!complete) break
    const remaining = await write(users)
    for (const { user } of remaining) leftOut.add(user.id)
    conflictSamples.push(...remaining.slice(0, MAX_CONFLICT_SAMPLES - conflictSamples.length))
  }
  return { users: { total, ...report, conflicts: leftOut.size, conflictSamples }, leftOut, complete }
}

const copyAll = async (source: Source, target: Target, options: CopyOptions): Promise<CopyReport> => {
  const { signal } = options
  // Before anything is written, because a table may not fit.
  const described: CopiedTable[] = []
  for (const table of source.tables) described.push(await target.describe(table, source.columns(table)))
  const copiedEvents = await target.copiedEvents(source.identity)
  const { users, leftOut, complete } = await copyUsers(source, target, copiedEvents, options)
  const { unknownFeatures } = source
  const report = { ...users, unknownFeatures, events: 0, tables: {}, complete }
  if (!complete) return report
  const log = await copyEvents(source, target, copiedEvents, signal)
  if (!log.complete) return { ...report, ...log }
  const tables = await copyTables(source, target, described, leftOut, signal)
  if (tables.complete) await target.listFactors()
  // Last, when the target has the admin keys of both stores. A session may be newer than the end of its key in the other store.
  if (tables.complete && 'admin_keys' in tables.tables) await target.revokeOrphanedImpersonations()
  return { ...report, ...log, ...tables }
}

/**
 * Copies users, sessions, e-mail tokens, timestamps, the audit log and the tables of features from an SQLite file, which is only
 * read, to the PostgreSQL database at `url`. When both stores have a user, the later change wins. Timestamps never move backwards.
 * A row that was copied once and then deleted or revoked in either store stays deleted.
 * @throws {CopyError} for errors that the operator can fix. Slices that were copied before the error stay copied.
 */
export const copy = async (file: string, url: string, options: CopyOptions): Promise<CopyReport> => {
  const source = new Source(file, options.features)
  try {
    const target = await Target.open(url, options.features)
    try {
      return await copyAll(source, target, options)
    } finally {
      await target.close()
    }
  } finally {
    source.close()
  }
}
