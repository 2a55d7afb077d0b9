/** Runs operations on a connection, synchronously. */
import type { Query, Statement, Steps } from '../operations/operation.ts'
import { isRefused, type Write } from '../operations/write.ts'
import { type Connection, statementCache } from './database.ts'
import { SQLITE } from './dialect.ts'

const bindingOf = (value: unknown): unknown => {
  if (typeof value === 'boolean') return Number(value)
  if (Array.isArray(value)) return JSON.stringify(value)
  return value ?? null
}

/** The values of `$1`, `$2`, …: SQLite takes them for parameters with the names `1`, `2`, …. Arrays become JSON, see `SQLITE`. */
export const bindingsOf = (values: readonly unknown[]): Readonly<Record<number, unknown>> => {
  const bindings: Record<number, unknown> = {}
  for (const [index, value] of values.entries()) bindings[index + 1] = bindingOf(value)
  return bindings
}

/**
 * Thrown instead of the result of an operation that was refused, or has caught the failure of a statement: its savepoint is rolled
 * back, as PostgreSQL rolls back the transaction.
 */
export class RolledBack {
  readonly write: Write<unknown>

  constructor(write: Write<unknown>) {
    this.write = write
  }
}

export class OperationRunner {
  readonly #prepare: ReturnType<typeof statementCache>

  constructor(db: Connection) {
    this.#prepare = statementCache(db)
  }

  /** @throws what a statement failed with, if the operation does not catch it; {@link RolledBack} if it does, or was refused. */
  run(operation: Steps<Write<unknown>> | Query<Write<unknown>>): Write<unknown> {
    if ('statement' in operation) return operation.result(this.#run(operation.statement) as never[])
    let hasFailed = false
    let step = operation.next([])
    while (!step.done) {
      let rows: readonly unknown[]
      try {
        rows = this.#run(step.value)
      } catch (error) {
        hasFailed = true
        step = operation.throw(error)
        continue
      }
      step = operation.next(rows)
    }
    if (hasFailed || isRefused(step.value)) throw new RolledBack(step.value)
    return step.value
  }

  #run({ text, values }: Statement): readonly unknown[] {
    const sql = typeof text === 'string' ? text : text(SQLITE)
    if (sql === '') return []
    const prepared = this.#prepare(sql)
    const bindings = bindingsOf(values)
    if (prepared.reader) return prepared.all(bindings)
    prepared.run(bindings)
    return []
  }
}
