/**
 * Time limits of a graceful stop, in milliseconds. The phases follow one another. All but the first end as soon as their work is
 * done:
 *
 * 1. `DRAIN_DELAY`: the instance keeps serving. The limits below count from its end.
 * 2. Requests in flight: `inFlight`.
 * 3. Background work, of which jobs of features have a limit, `jobs`, then waiting mails: `mails`.
 * 4. Last requests, then the storage, then spans (`traces`): the rest until `forcedExit`.
 */
const IN_FLIGHT = 10_000
const MAILS = 3_000
const LAST_WRITES = 2_000
const FORCED_EXIT = IN_FLIGHT + MAILS + LAST_WRITES

export const SHUTDOWN = {
  /** Clients that stall in a request or a response are then disconnected, so that they do not delay the phases that write. */
  inFlight: IN_FLIGHT,
  /** For jobs to notice that they are to end. One that does not is given up: its lease ends by itself. */
  jobs: 5_000,
  /** For one more attempt at each waiting mail. */
  mails: MAILS,
  /**
   * For repeating the last flush of last requests while the store fails. More than the 2 s that are left when stalled clients
   * and mails use up their limits: then the forced exit ends it, and last requests that the store still rejects are lost.
   */
  lastRequests: 4_000,
  /** For sending the last spans, after the storage has closed: they are worth less than what the phases before write. */
  traces: 2_000,
  /** The process exits with 1, whatever it waits for. */
  forcedExit: FORCED_EXIT,
  /** With `WORKERS`, the primary kills workers that still run. Longer than `forcedExit`: a worker ends itself first. */
  workerKill: FORCED_EXIT + 5_000,
} as const

export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const
