/** Copies a store into an empty one, of the same engine or the other (docs/design.md, "Storage"). */

import type { StorageLocation } from '../location.ts'
import { isUpToDate } from '../migrations/run.ts'
import type { Schema } from '../migrations/schema.ts'
import { tablesOf } from '../stored-feature.ts'
import { type CopiedTable, CopyError, type CopyStore } from './store.ts'

export interface CopyReport {
  readonly tables: Readonly<Record<string, number>>
  /** Features of the source that this version does not have: their tables are left out. */
  readonly unknownFeatures: readonly string[]
}

export interface CopyOptions {
  /** The tables of the core: one that refers to another one is behind it. */
  readonly coreTables: readonly string[]
  readonly schema: Schema
  /** Stops the copy. The target stays empty. */
  readonly signal: AbortSignal
  /** Called after each batch, with the number of rows done. */
  readonly onProgress: (done: number, total: number) => void
}

const openSource = async (from: StorageLocation): Promise<CopyStore> =>
  from.engine === 'sqlite'
    ? (await import('./sqlite.ts')).openSource(from.file)
    : (await import('./postgres.ts')).openSource(from.url)

const openTarget = async (to: StorageLocation, schema: Schema): Promise<CopyStore> =>
  to.engine === 'sqlite'
    ? (await import('./sqlite.ts')).openTarget(to.file, schema)
    : (await import('./postgres.ts')).openTarget(to.url, schema)

/** @returns the features that have migrated the source, but are not among those of this version. @throws {CopyError} */
const assertSchema = async (source: CopyStore, schema: Schema): Promise<readonly string[]> => {
  const recorded = await source.recorded().catch(cause => {
    throw new CopyError(`the source: it is no database of this version of the service (${cause.message})`, {
      cause,
    })
  })
  if (!(await isUpToDate(source.engine, recorded, schema)))
    throw new CopyError(
      'the source: another version of the service left it: start this version with it once, then copy',
    )
  const known = new Set(schema.features.map(({ name }) => name))
  const names = new Set(recorded.flatMap(({ feature }) => feature ?? []))
  return [...names].filter(name => !known.has(name))
}

/** @throws {CopyError} if the target has rows, or does not have a column of the source. */
const planTables = async (
  source: CopyStore,
  target: CopyStore,
  names: readonly string[],
): Promise<readonly CopiedTable[]> => {
  const tables: CopiedTable[] = []
  for (const name of names) {
    const existing = await target.columns(name)
    const columns = await source.columns(name)
    const missing = columns.find(column => !existing.includes(column))
    if (missing !== undefined)
      throw new CopyError(
        `the target: the table ${name} has no column ${missing}, which it has in the source: the migrations of its feature must create it on both engines`,
      )
    if ((await target.count(name)) > 0)
      throw new CopyError(
        `the target: the table ${name} has rows: a copy needs an empty database, so name a new one`,
      )
    // SQLite's positions are unique, and those of a transaction of PostgreSQL are equal: they are assigned again, in the same order.
    const isAssigned = name === 'events' && source.engine === 'postgres' && target.engine === 'sqlite'
    tables.push({ name, columns: isAssigned ? columns.filter(column => column !== 'position') : columns })
  }
  return tables
}

const copyTables = async (
  source: CopyStore,
  target: CopyStore,
  tables: readonly CopiedTable[],
  { signal, onProgress }: CopyOptions,
): Promise<Record<string, number>> => {
  let total = 0
  for (const { name } of tables) total += await source.count(name)
  const copied: Record<string, number> = {}
  let done = 0
  for (const table of tables) {
    const { name } = table
    copied[name] = 0
    await target.clear(name)
    for await (const rows of source.rows(table, name === 'events' ? ['position', 'id'] : [])) {
      signal.throwIfAborted()
      await target.add(table, rows)
      copied[name] += rows.length
      done += rows.length
      onProgress(done, total)
    }
  }
  return copied
}

/**
 * Copies all users with what belongs to them, the audit log and the tables of features, in one transaction of the target. Keys and positions
 * stay the same, so references and cursors hold. @throws {CopyError} for errors that the operator can fix; the reason of the signal.
 */
export const copy = async (
  from: StorageLocation,
  to: StorageLocation,
  options: CopyOptions,
): Promise<CopyReport> => {
  const { coreTables, schema } = options
  const names = [...coreTables, ...tablesOf(schema.features).map(({ name }) => name)]
  const source = await openSource(from)
  try {
    const unknownFeatures = await assertSchema(source, schema)
    await source.begin(names)
    const last = await source.lastNumbers()
    const target = await openTarget(to, schema)
    try {
      await target.begin(names, last)
      const tables = await planTables(source, target, names)
      const copied = await copyTables(source, target, tables, options)
      await target.commit(source.engine === target.engine ? last : { ...last, position: 0 })
      return { tables: copied, unknownFeatures }
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}
