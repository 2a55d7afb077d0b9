/**
 * Makes the end of access hold everywhere: once such a write is acknowledged, no process uses what it cached before. While it waits, one
 * process may use what another one has evicted already.
 *
 * **Lease.** Each process that caches has a row in `process_leases`, and renews it every 300 ms (`heartbeats.ts`) by a commit on the
 * connection that listens. PostgreSQL sends what was notified before a statement began ahead of the end of its response, so the response to a
 * renewal shows that no earlier notification is missing. A process uses its caches only within {@link LEASE} of the *sending* of the last
 * renewal that came back. It compares this with its monotonic clock at each use, so a process that was frozen refuses at its first request.
 *
 * **Confirmation.** The transaction of a write that ends access notifies a token, after the ids to evict. Each process that receives a token
 * stores it in its row: at most one update in flight, of the newest token. PostgreSQL delivers all notifications to all processes in the order
 * of their commits, so a token confirms every earlier one, and the writer knows the order from its own connection. It reads the rows in
 * the message that commits, and again until each process has confirmed its token or a later one.
 *
 * **Bound.** {@link LEASE_END} after the commit the writer stops waiting. This is safe: a renewal that a process sent after the commit shows
 * it the notification, and the lease of an earlier one has ended. A row whose process has not renewed it meanwhile is removed, so that
 * a process that was killed costs this time once. If the process lives, its next renewal adds the row again; until then it uses no cache, and
 * after it the notifications are complete.
 *
 * - A process that starts: its caches are empty, and it reads nothing into them before its row is committed. A writer that does not find the
 *   row has committed before, so the process reads what was written.
 * - A former primary: a renewal waits for the synchronous standby, so it fails once that is promoted, and leases end. Reads without a
 *   lease are followed by a commit for the same reason ({@link PROOF_OF_PRIMARY}). Without a synchronous standby, the former primary must be
 *   fenced.
 * - Processes of releases without leases follow within {@link EARLIER_RELEASE_BOUND}: while there is one, the writer waits as long. A renewal
 *   looks for them, so one that has started less than 300 ms ago is not seen.
 * - A commit with an unknown outcome is not acknowledged, so nothing is waited for.
 *
 * The wait holds no transaction, no connection and no lock. Assumed is that monotonic clocks run at the same rate within 3 %, and on
 * while a virtual machine is suspended, and that no running process is copied: the copies would share a row.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { DURATIONS, Histogram } from '#base/statistics/histogram'
import type { LeaseStatistics } from '../statistics.ts'
import type { Statement } from './connection.ts'

/** Milliseconds from the sending of a renewal for which a process uses its caches. */
export const LEASE = 530

/** Milliseconds after which a writer counts every lease from before its commit as ended. */
export const LEASE_END = 550

/** Milliseconds after which a process of a release without leases has followed. */
const EARLIER_RELEASE_BOUND = 1_000

/** The channel of the tokens that processes confirm. */
export const CONFIRMATION_CHANNEL = 'gatehouse_confirmations'

/** Milliseconds between two reads of the leases: the first and the longest. */
const FIRST_POLL = 1
const LONGEST_POLL = 32

/** A commit that waits for the synchronous standby, if there is one. A server that is no primary any more never ends it. */
export const PROOF_OF_PRIMARY: Statement = {
  name: 'proof-of-primary',
  text: `SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
    THEN pg_logical_emit_message(true, 'gatehouse', '') END`,
  values: [],
}

/** How processes of releases without leases ask whether their connection listens. This release asks in another statement. */
const HAS_EARLIER_RELEASE = `EXISTS (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'SELECT ''gatehouse\\_changes'' IN (SELECT pg\\_listening\\_channels())%'
  ) AS "hasEarlierRelease"`

export interface LeaseRow {
  readonly id: string
  /** The last token that the process has received. */
  readonly confirmed: string
  /** Counts the renewals. It never has a former value, also after the row was removed. */
  readonly renewals: number
}

export interface Renewal {
  readonly hasEarlierRelease: boolean
}

const REMOVE_ENDED = `DELETE FROM process_leases
  WHERE (id, renewals) IN (SELECT * FROM unnest(CAST($1 AS text[]), CAST($2 AS bigint[]))) RETURNING id`

/** A write whose token other processes confirm. */
export interface PendingWrite {
  /** Notifies the token and commits. Selects the {@link LeaseRow}s of the other processes as they are after the commit. */
  readonly commit: string
  /** Must be called after the commit. Resolves when no process uses what it cached before. @param leases what `commit` has selected. */
  confirmed(leases: readonly LeaseRow[]): Promise<void>
  /** Must be called if the commit has failed. */
  end(): void
}

type Read = <Row extends object>(statement: Statement) => Promise<readonly Row[]>

/** Rows by process, as a write has found them after its commit, without those that have confirmed it since. */
type Missing = Map<string, LeaseRow>

interface Wait {
  readonly missing: Missing
  readonly token: string
  readonly resolve: () => void
}

/** The lease of this process, and the writes of this process that wait for the others. */
export class ProcessLeases {
  /** Names the process for operators, too. */
  readonly id = `${hostname()}:${process.pid}:${randomUUID()}`
  readonly #read: Read
  readonly #onLapse: (id: string) => void
  readonly #selectOthers =
    `SELECT id, confirmed, renewals FROM process_leases WHERE id <> ${pg.escapeLiteral(this.id)}`
  /** Writes that have begun, by token. */
  readonly #pending = new Set<string>()
  readonly #waits = new Set<Wait>()
  /** The position of each received token in the order of commits, while writes are pending. */
  readonly #order = new Map<string, number>()
  readonly #durations = new Histogram(DURATIONS)
  #confirmed = ''
  #renewals = 0
  #tokens = 0
  /** `null` without a renewal on the present connection. */
  #hasEarlierRelease: boolean | null = null
  #isPolling = false
  #pollDelay = FIRST_POLL
  #processes = 1
  #lapses = 0

  /**
   * @param read runs a statement.
   * @param onLapse called with the id of each process whose lease ended before it confirmed a write.
   */
  constructor(read: Read, onLapse: (id: string) => void = () => undefined) {
    this.#read = read
    this.#onLapse = onLapse
  }

  get statistics(): LeaseStatistics {
    return { processes: this.#processes, lapses: this.#lapses, waits: this.#durations.value }
  }

  /** Renews the lease, and adds the row if it is missing. @param columns more SQL to select. */
  renewal(columns: string): Statement {
    return {
      text: `INSERT INTO process_leases (id, confirmed, renewals) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET confirmed = excluded.confirmed, renewals = excluded.renewals
        RETURNING ${HAS_EARLIER_RELEASE}, ${columns}`,
      values: [this.id, this.#confirmed, ++this.#renewals],
    }
  }

  /** Must be called with the response to a renewal. */
  renewed({ hasEarlierRelease }: Renewal): void {
    this.#hasEarlierRelease = hasEarlierRelease
  }

  /** Must be called when the connection that renews is lost: what it has seen of other processes is not recent any more. */
  lost(): void {
    this.#hasEarlierRelease = null
  }

  /** Stores the newest token. Visible to other processes at once, and nobody needs it after a crash: so it does not wait for the disk. */
  get confirmation(): string {
    return `BEGIN; SET LOCAL synchronous_commit = off;
      UPDATE process_leases SET confirmed = ${pg.escapeLiteral(this.#confirmed)} WHERE id = ${pg.escapeLiteral(this.id)};
      COMMIT`
  }

  /** Removes the row. The process must not use its caches any more. */
  get removal(): string {
    return `DELETE FROM process_leases WHERE id = ${pg.escapeLiteral(this.id)}`
  }

  /** Whether a token is of a write of this process: nobody waits for its confirmation here. */
  isOwn(token: string): boolean {
    return token.startsWith(this.id)
  }

  /** Must be called with each token, in the order of the notifications, after what was notified before it has been evicted. */
  received(token: string): void {
    this.#confirmed = token
    if (this.#pending.size > 0) this.#order.set(token, this.#order.size)
  }

  /** Must be called before the commit of a write that ends access. */
  begin(): PendingWrite {
    const token = `${this.id}:${++this.#tokens}`
    this.#pending.add(token)
    const end = (): void => {
      this.#pending.delete(token)
      if (this.#pending.size === 0) this.#order.clear()
    }
    return {
      commit: `NOTIFY ${CONFIRMATION_CHANNEL}, ${pg.escapeLiteral(token)}; COMMIT; ${this.#selectOthers}`,
      confirmed: leases => this.#confirmedBy(leases, token).finally(end),
      end,
    }
  }

  async #confirmedBy(leases: readonly LeaseRow[], token: string): Promise<void> {
    const startedAt = performance.now()
    const missing: Missing = new Map(leases.map(lease => [lease.id, lease]))
    this.#processes = missing.size + 1
    if (this.#hasEarlierRelease ?? (await this.#findsEarlierRelease())) await sleep(EARLIER_RELEASE_BOUND)
    else if (missing.size > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const wait = { missing, token, resolve }
      const timer = setTimeout(resolve, LEASE_END)
      this.#waits.add(wait)
      this.#pollDelay = FIRST_POLL
      void this.#poll()
      await promise
      clearTimeout(timer)
      this.#waits.delete(wait)
      if (missing.size > 0) void this.#removeEnded(missing)
    }
    this.#durations.observeSince(startedAt)
  }

  /** For a process that has not renewed its lease yet, as most commands. Without a response it counts on an earlier release. */
  async #findsEarlierRelease(): Promise<boolean> {
    const found = await this.#read<Renewal>({ text: `SELECT ${HAS_EARLIER_RELEASE}`, values: [] }).catch(
      () => [],
    )
    return found[0]?.hasEarlierRelease ?? true
  }

  /** Reads the leases until no write waits: one read for all writes. */
  async #poll(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    while (this.#waits.size > 0) {
      await sleep(this.#pollDelay)
      this.#pollDelay = Math.min(2 * this.#pollDelay, LONGEST_POLL)
      // A write that began meanwhile may not be visible to a read that is already on its way.
      const waits = [...this.#waits]
      const leases = await this.#read<LeaseRow>({
        name: 'lease-confirmations',
        text: this.#selectOthers,
        values: [],
      }).catch(() => null)
      if (leases !== null) for (const wait of waits) this.#check(wait, leases)
    }
    this.#isPolling = false
  }

  /** Takes the processes out that have confirmed the write, or have removed their rows. */
  #check({ missing, token, resolve }: Wait, leases: readonly LeaseRow[]): void {
    const own = this.#order.get(token) ?? Number.POSITIVE_INFINITY
    const unconfirmed = new Set<string>()
    for (const { id, confirmed } of leases)
      if ((this.#order.get(confirmed) ?? Number.NEGATIVE_INFINITY) < own) unconfirmed.add(id)
    for (const id of missing.keys()) if (!unconfirmed.has(id)) missing.delete(id)
    if (missing.size === 0) resolve()
  }

  /** Removes the rows that were not renewed while a write has waited. A failure leaves them to the next write. */
  async #removeEnded(missing: Missing): Promise<void> {
    const rows = [...missing.values()]
    const values = [rows.map(({ id }) => id), rows.map(({ renewals }) => renewals)]
    const removed = await this.#read<LeaseRow>({ text: REMOVE_ENDED, values }).catch(() => [])
    this.#lapses += removed.length
    for (const { id } of removed) this.#onLapse(id)
  }
}
