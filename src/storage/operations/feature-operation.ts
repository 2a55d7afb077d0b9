/**
 * Operations of features behave alike on both engines: the same values are accepted, arguments and results are copied, and a
 * mistake has the same error. The core's operations are tested on both engines instead, and save this.
 */
import { ServiceError } from '#base/errors'
import type { Statement, Steps } from './operation.ts'
import type { Write } from './write.ts'

/** An operation that cannot run as it is written. It is rolled back, and its request gets a 500. */
export class OperationError extends Error {
  readonly code = 'OPERATION'

  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OperationError'
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** PostgreSQL's limit for the name of a prepared statement. */
const MAX_NAME_LENGTH = 63

const isScalar = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  (typeof value === 'string' && !value.includes('\0')) ||
  (typeof value === 'number' && Number.isFinite(value))

const isValue = (value: unknown): boolean =>
  isScalar(value) ||
  typeof value === 'boolean' ||
  value instanceof Uint8Array ||
  (typeof value === 'bigint' && Number.isSafeInteger(Number(value))) ||
  (Array.isArray(value) && value.every(isScalar))

/** Statements that would end the transaction in which an operation runs, with the writes of others on SQLite. */
const CONTROLS_TRANSACTION = /^\s*(begin|start|commit|end|rollback|abort|savepoint|release|prepare)\b/i

/** What the message about a value says: the value itself may be personal data. */
const kindOf = (value: unknown): string => {
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return 'a string with a null character'
  if (typeof value === 'bigint') return 'a bigint that is not a safe integer'
  if (typeof value === 'object' && value !== null) return `an object (${value.constructor?.name ?? 'Object'})`
  return `a ${typeof value}`
}

const isStatement = (value: unknown): value is Statement =>
  typeof value === 'object' &&
  value !== null &&
  'text' in value &&
  (typeof value.text === 'string' || typeof value.text === 'function') &&
  'values' in value &&
  Array.isArray(value.values)

/**
 * @param name of the operation, or read, of a feature.
 * @returns the statement, with the name of the feature before its name: several features may use one name.
 * @throws {OperationError} for what is not a statement, and for values that the engines would store differently or refuse.
 */
export const featureStatement = (name: string, statement: unknown): Statement => {
  if (!isStatement(statement))
    throw new OperationError(
      `${name} must yield statements with a text and values. Use yield* for a part of an operation`,
    )
  const wrong = statement.values.findIndex(value => !isValue(value))
  if (wrong >= 0)
    throw new OperationError(
      `${name}: $${wrong + 1} is ${kindOf(statement.values[wrong])}. Use strings, finite numbers, safe bigints, booleans, Uint8Arrays, null, or arrays of strings and numbers. Store times as milliseconds, and objects as JSON`,
    )
  const { name: ownName, text } = statement
  if (typeof text === 'string' && CONTROLS_TRANSACTION.test(text))
    throw new OperationError(`${name} must not control its transaction`)
  const rest = {
    text,
    values: statement.values.map(value => (typeof value === 'boolean' ? Number(value) : value)),
  }
  const fullName = `${name.slice(0, name.indexOf('.'))}.${ownName}`
  return ownName === undefined || fullName.length > MAX_NAME_LENGTH ? rest : { ...rest, name: fullName }
}

/**
 * Copies values as the writer thread of SQLite receives them. @param what for the message.
 * @throws {OperationError} for functions and other values that cannot be copied.
 */
const copyOf = <Value>(value: Value, what: string): Value => {
  try {
    return structuredClone(value)
  } catch (cause) {
    throw new OperationError(`${what} must be plain data: ${messageOf(cause)}`, { cause })
  }
}

/** The arguments of an operation. @throws {OperationError} if they cannot be copied. */
export const copyArguments = (name: string, args: readonly unknown[]): readonly unknown[] =>
  copyOf(args, `The arguments of ${name}`)

const isGenerator = (value: unknown): value is Steps<unknown> =>
  typeof value === 'object' &&
  value !== null &&
  Symbol.iterator in value &&
  'next' in value &&
  'throw' in value

const isIdList = (value: unknown): boolean =>
  Array.isArray(value) && value.every(id => typeof id === 'string')

const isWrite = (value: unknown): value is Write<unknown> =>
  typeof value === 'object' &&
  value !== null &&
  'evicts' in value &&
  (value.evicts === null || isIdList(value.evicts)) &&
  'notifies' in value

/**
 * Errors of a statement or of data, which a repeated request would meet again: of PostgreSQL's classes data exception, integrity
 * constraint, and syntax or access rule, or with a wrong number of values (08P01). Others, such as a full disk, a lock or a lost
 * connection, are of the store.
 */
const MISTAKES = /^(?:22|23|42|08P01$|SQLITE_(?:CONSTRAINT|ERROR|MISMATCH|RANGE|TOOBIG|MISUSE|AUTH))/

/** A statement of an operation that failed. */
interface Failure {
  readonly error: unknown
}

/** Whether a statement would fail again. @param error of an engine. */
export const isMistake = (error: unknown): boolean => {
  const { code } = (error ?? {}) as { code?: unknown }
  // `better-sqlite3` has errors of its own for statements that it cannot run.
  return typeof code === 'string'
    ? MISTAKES.test(code)
    : error instanceof TypeError || error instanceof RangeError
}

/** @returns what a read of a feature fails with: a mistake is not a failure of the store. */
export const readError = (name: string, error: unknown): unknown => {
  if (!(error instanceof ServiceError && isMistake(error.cause))) return error
  return new OperationError(`${name} failed: ${messageOf(error.cause)}`, { cause: error.cause })
}

/** Ends the generator, so that its `finally` blocks run. What they yield is not run. */
const end = (steps: Steps<unknown>): void => {
  try {
    steps.return(undefined)
  } catch {
    // The error that is thrown next is the cause.
  }
}

/** @throws {OperationError} instead of the error of the operation. */
const advance = (
  name: string,
  step: () => IteratorResult<Statement, unknown>,
): IteratorResult<Statement, unknown> => {
  try {
    return step()
  } catch (cause) {
    throw new OperationError(`${name} failed: ${messageOf(cause)}`, { cause })
  }
}

/**
 * After a statement has failed, an operation must end: PostgreSQL has aborted its transaction. Both engines roll back what it has
 * written, also if it returns a result.
 * @throws {OperationError} also for what is not a statement. The generator has ended then.
 */
const nextStatement = (
  name: string,
  yielded: unknown,
  failure: Failure | null,
  steps: Steps<unknown>,
): Statement => {
  try {
    if (failure === null) return featureStatement(name, yielded)
    throw new OperationError(
      `${name} must end after a statement that failed (${messageOf(failure.error)}), and cannot run another one`,
      { cause: failure.error },
    )
  } catch (error) {
    end(steps)
    throw error
  }
}

/**
 * An operation can catch the failure of a statement, such as a value that is taken, and then end. A failure of the store ends it.
 * @param name with the name of the feature before it.
 */
export const featureOperation = (name: string, operation: (...args: readonly never[]) => unknown) =>
  function* run(...args: readonly unknown[]): Steps<Write<unknown>> {
    let failure: Failure | null = null
    const steps = operation(...(args as never[]))
    if (!isGenerator(steps))
      throw new OperationError(`${name} must be a generator: declare it with function*`)
    let step = advance(name, () => steps.next([]))
    while (!step.done) {
      const statement = nextStatement(name, step.value, failure, steps)
      let rows: readonly unknown[] = []
      try {
        rows = yield statement
      } catch (error) {
        if (!isMistake(error)) {
          end(steps)
          throw error
        }
        failure = { error }
      }
      const resume: Failure | null = failure
      step = advance(name, () => (resume === null ? steps.next(rows) : steps.throw(resume.error)))
    }
    if (!isWrite(step.value))
      throw new OperationError(
        `${name} must return invalidates(…), refusedFor(…) or invalidatesNothing(…), with the id of a user`,
      )
    return copyOf(step.value, `The result of ${name}`)
  }
