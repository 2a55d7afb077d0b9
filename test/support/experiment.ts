/** The frame of experiments outside of tap (`npm run test:crash`, `test:faults`, `test:image`, `test:instances`, `test:soak`). */
import type { Context } from './build.ts'

export const print = (line: string): void => void process.stdout.write(`${line}\n`)

/** The given seed, else a new one. */
export const seedOf = (given: string | undefined): number =>
  given === undefined ? Date.now() % 1_000_000 : Number(given)

export interface Experiment {
  readonly context: Context
  /** Runs and forgets what {@link context} has registered, last first. */
  cleanUp(): Promise<void>
  /** Prints the reason, cleans up and ends the process with 1. */
  abandon(reason: unknown): void
}

/**
 * Abandons the run after a signal, an uncaught exception, and `limit` milliseconds.
 * @param end runs after the clean-up of an abandoned run.
 */
export const startExperiment = (limit: number, end?: () => unknown): Experiment => {
  const cleanups: (() => unknown)[] = []
  const cleanUp = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  }
  const abandon = (reason: unknown): void => {
    print(`\nabandoned: ${reason instanceof Error ? reason.stack : reason}`)
    void cleanUp()
      .then(end)
      .finally(() => process.exit(1))
  }
  for (const event of ['SIGINT', 'SIGTERM', 'uncaughtException'] as const) process.once(event, abandon)
  setTimeout(abandon, limit, 'the run takes too long').unref()
  return { context: { teardown: cleanup => void cleanups.push(cleanup) }, cleanUp, abandon }
}
