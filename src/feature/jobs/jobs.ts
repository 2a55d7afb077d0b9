/**
 * Jobs of features: periodic work that one process of all runs. A lease in the store says which. A process that is killed or frozen loses
 * it after a minute and a half.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { endsWithin } from '#base/concurrency/ends-within'
import { Counters } from '#base/statistics/counters'
import { isAhead, type JobStore, type Lease } from './stored-jobs.ts'

export interface JobRun {
  /** The name of the job in the store, such as `notes.removeOld`. */
  readonly job: string
  /** Increases with each run of all processes: see `hasLease`. */
  readonly fence: number
  /** Aborted when the service stops, and when the lease has ended. */
  readonly signal: AbortSignal
}

/** @typeParam Deps what the services of the feature are created with. */
export interface Job<Deps> {
  /** Milliseconds from the start of one run to the start of the next, at least 1,000. A run that fails is repeated earlier. */
  readonly every: number
  /** Whether the settings switch it on. Default: it is on. */
  readonly isEnabled?: (deps: Deps) => boolean
  /** A run that is cut short throws, by `signal.throwIfAborted()` for example: another process continues then. */
  readonly run: (deps: Deps, run: JobRun) => Promise<void>
}

/** A job of a list of features, with its name in the store. */
export interface ScheduledJob {
  readonly name: string
  readonly every: number
  /** A run lasts until the service stops. Its lease is short, so that another process continues within seconds. */
  readonly isContinuous?: true
  readonly run: (run: JobRun) => Promise<void>
}

export interface JobsDeps {
  readonly jobs: readonly ScheduledJob[]
  readonly store: JobStore
  readonly clock: () => number
  readonly onFailure: (job: string, error: unknown) => void
  /** Called when a lease could not be read or written. */
  readonly onStoreFailure: (error: unknown) => void
  /** Milliseconds for which `close` waits for runs. */
  readonly closing: number
  /** Default: the pace of production. */
  readonly pace?: JobPace | undefined
}

/** The runs of one job in this process. */
export interface JobStatistics {
  readonly job: string
  readonly succeeded: number
  readonly failed: number
}

/** Milliseconds. A lease is renewed after a third of it, so it never ends for a process whose clock is a minute ahead. */
const LEASE = 90_000

/** A process whose clock is far ahead takes the lease from another one. The fence keeps the cursor of a consumer right even then. */
const CONTINUOUS_LEASE = 15_000

const leaseOf = ({ isContinuous }: ScheduledJob): number => (isContinuous ? CONTINUOUS_LEASE : LEASE)

/** Milliseconds. */
export interface JobPace {
  /** The first run after a start begins within this time, and the first repetition of one that failed. */
  readonly startWithin: number
  /** From one look at the lease to the next, at most. It is a read: another process may have ended, or a clock been set. */
  readonly maxWait: number
}

const PACE: JobPace = { startWithin: 10_000, maxWait: 60_000 }

export class Jobs {
  readonly #deps: JobsDeps
  readonly #pace: JobPace
  readonly #closing = new AbortController()
  readonly #outcomes: ReadonlyMap<string, Counters<'succeeded' | 'failed'>>
  /** The jobs that run in this process now. */
  readonly #current = new Set<string>()
  #running: Promise<unknown> = Promise.resolve()

  constructor(deps: JobsDeps) {
    this.#deps = deps
    this.#pace = deps.pace ?? PACE
    this.#outcomes = new Map(deps.jobs.map(({ name }) => [name, new Counters(['succeeded', 'failed'])]))
  }

  get statistics(): readonly JobStatistics[] {
    return [...this.#outcomes].map(([job, { values }]) => ({ job, ...values }))
  }

  start(): void {
    this.#running = Promise.all(this.#deps.jobs.map(job => this.#repeat(job)))
  }

  /** Aborts the runs, and waits for them as long as there is time. */
  async close(): Promise<void> {
    this.#closing.abort()
    if (await endsWithin(this.#deps.closing, this.#running)) return
    for (const job of this.#current)
      this.#deps.onFailure(job, new Error('the run did not end when it was aborted'))
  }

  async #repeat(job: ScheduledJob): Promise<void> {
    // Processes that start together do not ask together.
    await this.#wait(randomInt(Math.min(job.every, this.#pace.startWithin)))
    while (!this.#closing.signal.aborted) {
      const next = await this.#runIfDue(job).catch(error => {
        this.#deps.onStoreFailure(error)
        return this.#pace.startWithin
      })
      await this.#wait(Math.min(next, this.#pace.maxWait))
    }
  }

  /** @returns milliseconds until the job may be due again. */
  async #runIfDue(job: ScheduledJob): Promise<number> {
    const { store, clock } = this.#deps
    const startedAt = clock()
    const notBefore = await store.notBefore(job.name)
    if (isAhead(notBefore, startedAt, Math.max(job.every, leaseOf(job)))) return notBefore - startedAt
    const taken = await store.takeLease(job.name, startedAt, job.every, leaseOf(job))
    if (taken === null) return this.#pace.maxWait
    const outcome = await this.#run(job, taken)
    if (outcome !== 'aborted') this.#outcomes.get(job.name)?.add(outcome)
    const failures = outcome === 'failed' ? taken.failures + 1 : 0
    const wait = {
      succeeded: Math.max(0, startedAt + job.every - clock()),
      failed: Math.min(job.every, this.#pace.startWithin * 2 ** taken.failures),
      // Another process continues at once.
      aborted: 0,
    }[outcome]
    await store.endLease(job.name, taken.fence, clock() + wait, failures)
    return wait
  }

  async #run(job: ScheduledJob, { fence }: Lease): Promise<'succeeded' | 'failed' | 'aborted'> {
    const { store, clock, onFailure } = this.#deps
    const { name, run } = job
    const lease = leaseOf(job)
    const lost = new AbortController()
    const signal = AbortSignal.any([this.#closing.signal, lost.signal])
    let heldUntil = clock() + lease
    const renew = async (): Promise<void> => {
      const until = clock() + lease
      // A renewal that fails is followed by another one, until the lease has ended.
      const isRenewed = await store.renewLease(name, fence, until).catch(() => null)
      if (isRenewed) heldUntil = until
      else if (isRenewed === false || clock() >= heldUntil) lost.abort()
    }
    const renewal = setInterval(() => void renew(), lease / 3).unref()
    this.#current.add(name)
    try {
      await run({ job: name, fence, signal })
      return lost.signal.aborted ? 'aborted' : 'succeeded'
    } catch (error) {
      if (signal.aborted) return 'aborted'
      onFailure(name, error)
      return 'failed'
    } finally {
      clearInterval(renewal)
      this.#current.delete(name)
    }
  }

  /** Keeps no process alive, and ends when this is closed. */
  #wait(milliseconds: number): Promise<void> {
    return sleep(milliseconds, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined)
  }
}
