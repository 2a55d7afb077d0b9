/** Runs operations on a connection, synchronously. */
import type { Query, Statement, Steps } from '../operations/operation.ts'
import type { Connection } from './database.ts'
import { SQLITE } from './dialect.ts'
import { bindingsOf } from './parameters.ts'

interface Prepared {
  /** Whether it returns rows. */
  readonly reader: boolean
  all(bindings: object): unknown[]
  run(bindings: object): unknown
}

export class OperationRunner {
  readonly #db: Connection
  /** By text. The operations have a bounded number of texts. */
  readonly #prepared = new Map<string, Prepared>()

  constructor(db: Connection) {
    this.#db = db
  }

  /** @throws what a statement failed with, if the operation does not catch it. */
  run<Result>(operation: Steps<Result> | Query<Result>): Result {
    if ('statement' in operation) return operation.result(this.#run(operation.statement) as never[])
    let step = operation.next([])
    while (!step.done) {
      let rows: readonly unknown[]
      try {
        rows = this.#run(step.value)
      } catch (error) {
        step = operation.throw(error)
        continue
      }
      step = operation.next(rows)
    }
    return step.value
  }

  #run({ text, values }: Statement): readonly unknown[] {
    const sql = typeof text === 'string' ? text : text(SQLITE)
    if (sql === '') return []
    let prepared = this.#prepared.get(sql)
    if (prepared === undefined) {
      prepared = this.#db.prepare(sql) as Prepared
      this.#prepared.set(sql, prepared)
    }
    const bindings = bindingsOf(values)
    if (prepared.reader) return prepared.all(bindings)
    prepared.run(bindings)
    return []
  }
}
