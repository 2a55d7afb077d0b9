/** Runs operations: one of several statements in a transaction, each statement with one round trip. */
import type * as operations from '../operations/operation.ts'
import type { UncachedWrite, Write } from '../operations/write.ts'
import type { Database, Run, Statement } from './database.ts'
import { POSTGRES } from './dialect.ts'

export const statementOf = ({ text, ...statement }: operations.Statement): Statement => ({
  ...statement,
  text: typeof text === 'string' ? text : text(POSTGRES),
})

const runSteps = async <Result>(run: Run, operation: operations.Steps<Result>): Promise<Result> => {
  let step = operation.next([])
  while (!step.done) {
    const statement = statementOf(step.value)
    let rows: readonly unknown[] = []
    try {
      if (statement.text !== '') rows = await run(statement)
    } catch (error) {
      step = operation.throw(error)
      continue
    }
    step = operation.next(rows)
  }
  return step.value
}

/**
 * @param start creates the operation.
 * @throws {ServiceError} as `Database.transaction`
 */
export const runOperation = async <Result>(
  database: Database,
  start: () => operations.Steps<Write<Result>> | operations.Query<UncachedWrite<Result>>,
): Promise<Result> => {
  const operation = start()
  if (!('statement' in operation)) {
    // A generator runs once: each attempt needs another one.
    return database.transaction(run => runSteps(run, start() as typeof operation))
  }
  const rows = await database.writeUncached(statementOf(operation.statement))
  return operation.result(rows as never[]).result
}
