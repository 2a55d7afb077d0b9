/**
 * What a migration of a feature does, without a database and without Kysely: the calls that it makes. Equal calls make equal
 * statements. Kysely would make the statements themselves, but takes 100 ms and 7 MB of a start.
 */
import type { FeatureMigration } from '../stored-feature.ts'
import { type FeatureDialect, KEY_TYPES } from './schema-dialect.ts'

/** Calls at which a migration counts as one that does not end without rows. */
const MAX_CALLS = 10_000

/** Arguments that a callback of a query builder gets at most. */
const CALLBACK_ARGUMENTS = [0, 1, 2]

class Recorder {
  readonly calls: string[] = []
  /** False once a migration does what calls do not show, such as reading rows. */
  isExact = true
  /** By value: how it came about. */
  readonly #origins = new WeakMap<object, string>()

  readonly #fail = (): never => {
    this.isExact = false
    throw new Error('This migration cannot be recorded')
  }

  /** Only calls and properties of it can be followed. */
  readonly #onlyCalls = {
    has: this.#fail,
    set: this.#fail,
    ownKeys: this.#fail,
    construct: this.#fail,
    getPrototypeOf: this.#fail,
  }

  /** A value whose calls are recorded. */
  value(origin: string): object {
    const value = new Proxy(() => undefined, {
      ...this.#onlyCalls,
      get: (_target, key) =>
        // `then` is read of what a migration awaits: rows, of which only those of `execute` can be ignored.
        typeof key === 'symbol' || key === 'then' ? this.#fail() : this.value(`${origin}.${key}`),
      apply: (_target, _self, args: unknown[]) => this.#call(origin, args),
    })
    this.#origins.set(value, origin)
    return value
  }

  /** What a statement results in: the migration may await it, but not use it. */
  #unused(): object {
    return new Proxy(
      {},
      { ...this.#onlyCalls, get: (_target, key) => (key === 'then' ? undefined : this.#fail()) },
    )
  }

  #call(origin: string, args: readonly unknown[]): unknown {
    if (this.calls.length === MAX_CALLS) this.#fail()
    const position = this.calls.push('') - 1
    const call = `#${position}`
    const pending: Promise<unknown>[] = []
    const described = args.map((arg, index) => this.#describe(arg, `${call}.${index}`, pending))
    this.calls[position] = `${origin}(${described.join()})`
    if (!origin.endsWith('.execute')) return pending.length > 0 ? this.#fail() : this.value(call)
    return Promise.all(pending).then(() => this.#unused())
  }

  /** @param pending receives what asynchronous callbacks return, such as that of a transaction. */
  #describe(value: unknown, origin: string, pending: Promise<unknown>[]): string {
    const describe = (part: unknown): string => this.#describe(part, origin, pending)
    if (typeof value === 'string') return JSON.stringify(value)
    if (typeof value === 'symbol') return this.#fail()
    if (typeof value === 'bigint') return `${value}n`
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return String(value)
    const known = this.#origins.get(value)
    if (known !== undefined) return known
    if (typeof value === 'function')
      return `=>${describe(value(...CALLBACK_ARGUMENTS.map(index => this.value(`${origin}(${index})`))))}`
    if (value instanceof Promise) {
      // The migration that awaits it sees the rejection too.
      pending.push(value)
      value.catch(() => undefined)
      return 'pending'
    }
    if (Array.isArray(value)) return `[${value.map(describe).join()}]`
    if (Object.getPrototypeOf(value) !== Object.prototype) return this.#fail()
    return `{${Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}:${describe(part)}`)}}`
  }
}

/**
 * @returns the calls of a migration, or `null` when calls do not show everything that it does: it reads rows, uses `sql` of Kysely or
 * fails.
 */
export const recordedCalls = async (
  migration: FeatureMigration,
  engine: FeatureDialect['engine'],
): Promise<readonly string[] | null> => {
  const recorder = new Recorder()
  const dialect = {
    engine,
    keyType: KEY_TYPES[engine],
    text: engine === 'sqlite' ? 'text' : recorder.value('text'),
  }
  try {
    await migration.up(recorder.value('db') as never, dialect as never)
    return recorder.isExact ? recorder.calls : null
  } catch {
    return null
  }
}
