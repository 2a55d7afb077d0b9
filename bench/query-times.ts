/** Measures the queries of a process that the probe is loaded into, each from the call to the rows. */
import Database from 'better-sqlite3'
import pg from 'pg'
import { median } from './statistics.ts'

/** A statement that has run less often is none of the pages that are measured. */
const MIN_RUNS = 10

/** Milliseconds of the runs of each statement, by its text. */
const times = new Map<string, number[]>()

const note = (text: string, begin: number): void => {
  const runs = times.get(text) ?? []
  runs.push(performance.now() - begin)
  times.set(text, runs)
}

type Method = (...args: unknown[]) => unknown

/** @param textOf a call. */
const time = (
  prototype: object,
  name: string,
  textOf: (self: unknown, args: readonly unknown[]) => string,
): void => {
  const original = Reflect.get(prototype, name) as Method
  Reflect.set(prototype, name, function timed(this: unknown, ...args: unknown[]) {
    const [text, begin] = [textOf(this, args), performance.now()]
    const result = original.apply(this, args)
    if (!(result instanceof Promise)) note(text, begin)
    else
      void result.then(
        () => note(text, begin),
        () => undefined,
      )
    return result
  })
}

/** Begins to measure. Of a connection to PostgreSQL, the time on the network counts. */
export const watchQueries = (): void => {
  const database = new Database(':memory:')
  const statement = Object.getPrototypeOf(database.prepare('SELECT 1'))
  database.close()
  for (const name of ['get', 'all', 'run']) time(statement, name, self => (self as Database.Statement).source)
  time(pg.Client.prototype, 'query', (_, [query]) =>
    typeof query === 'string' ? query : (query as pg.QueryConfig).text,
  )
}

/** @returns the greatest median of a statement in milliseconds: single runs also wait for the processor. */
export const slowestQuery = (): number =>
  Math.max(0, ...times.values().flatMap(runs => (runs.length < MIN_RUNS ? [] : [median(runs)])))
