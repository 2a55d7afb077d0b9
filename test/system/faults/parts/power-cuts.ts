/**
 * Power cuts on SQLite (docs/design.md, "Storage"): the real service writes under load, a preloaded library records every file operation in
 * order, and each cut restores the folder as a disk may leave it that loses unsynced writes. Every acknowledged write must
 * be there. With `synchronous=NORMAL` some must be lost, which proves that the test can fail.
 *
 * Needs Linux and a C compiler, and is skipped otherwise.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { secretFileOf } from '#core/auth/secret-file'
import { schemaOf } from '#core/store/migrations'
import { migrate } from '#storage/sqlite/migrate'
import { temporaryFolder } from '../../../support/build.ts'
import { startServer } from '../../../support/process.ts'
import { Report } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'
import { ALL_LOST, Disk, type Loss, someLost, torn } from '../power/disk.ts'
import { Load } from '../power/load.ts'
import { compileRecorder, type Recording, readRecording } from '../power/recording.ts'
import { timeline, verifier } from '../power/verify.ts'

const CUTS = 1_000
const PROOF_CUTS = 100

/** Records after which the first process is killed, so that the second one recovers its write-ahead log. */
const KILL_AFTER = 12_000

/** Requests per client of the later processes. */
const REQUESTS = { recovered: 150, last: 20, proof: 100 }

/** The service creates both folders. */
const DATABASE = 'data/accounts/gatehouse.db'

interface Recorded {
  readonly folder: string
  readonly recording: Recording
  readonly load: Load
  readonly runs: readonly number[]
}

/** Runs and records several processes in sequence on one database. */
const record = async (
  { context, random }: FaultPart,
  library: string,
  processes: readonly { readonly requests: number; readonly env: Record<string, string> }[],
): Promise<Recorded> => {
  // The library compares paths as the service opens them.
  const base = realpathSync(temporaryFolder(context))
  const folder = join(base, 'recorded')
  const log = join(base, 'log')
  mkdirSync(folder)
  writeFileSync(log, '')
  const logSize = () => statSync(log).size
  const load = new Load(random, logSize)
  const runs: number[] = []
  for (const { requests, env } of processes) {
    runs.push(logSize())
    const server = await startServer(context, {
      databaseFile: join(folder, DATABASE),
      env: { JWT_SECRET: '', LD_PRELOAD: library, RECORD_ROOT: folder, RECORD_LOG: log, ...env },
    })
    await load.run(server.url, requests)
    await server.stop('SIGTERM')
  }
  return { folder, recording: readRecording(log), load, runs }
}

/** The inodes of the database and of its write-ahead logs. */
const inodes = ({ records }: Recording, path: string): Set<number> =>
  new Set(records.flatMap(record => (record.type === 'create' && record.path === path ? [record.inode] : [])))

/** Positions of cuts: every write to the database, every rare call, then random ones. */
const chooseCuts = ({ random }: FaultPart, recording: Recording, count: number): Set<number> => {
  const database = inodes(recording, `/${DATABASE}`)
  const special = recording.records.flatMap((record, index) => {
    if (record.type === 'response') return []
    const isRare = !(record.type === 'write' || record.type === 'sync') || database.has(record.inode)
    return isRare ? [index, index + 1, index + 2] : []
  })
  const cuts = new Set<number>()
  while (special.length > 0 && cuts.size < count / 2) {
    const [cut] = special.splice(random.integer(0, special.length - 1), 1)
    if (cut !== undefined && cut <= recording.records.length) cuts.add(cut)
  }
  while (cuts.size < Math.min(count, recording.records.length)) {
    cuts.add(random.integer(1, recording.records.length))
  }
  return cuts
}

const SHARES = [0.1, 0.5, 0.9]
const SECTORS = [512, 4_096]

const chooseLoss = ({ random }: FaultPart, number: number): Loss => {
  const share = random.pick(SHARES) ?? 0
  if (number % 3 === 0) return ALL_LOST
  return number % 3 === 1 ? someLost(random, share) : torn(random, share, random.pick(SECTORS) ?? 0)
}

interface Outcome {
  cuts: number
  /** Cuts that lost unsynced writes. */
  unsynced: number
  readonly lost: string[]
  readonly damaged: string[]
  readonly unlikeTheFiles: string[]
}

/** Replays the recording once, and stops at each cut. */
const cutPower = async (
  part: FaultPart,
  { folder, recording, load, runs }: Recorded,
  cuts: ReadonlySet<number>,
): Promise<Outcome> => {
  const outcome: Outcome = { cuts: 0, unsynced: 0, lost: [], damaged: [], unlikeTheFiles: [] }
  const verify = verifier(load.users, timeline(recording, runs))
  const target = join(temporaryFolder(part.context), 'restored')
  const file = join(target, DATABASE)
  const secret = readFileSync(secretFileOf(join(folder, DATABASE)), 'utf8')
  const firstResponse = recording.records.findIndex(({ type }) => type === 'response')
  const disk = new Disk(statSync(folder).ino)
  for (const [index, record] of recording.records.entries()) {
    disk.apply(record)
    const cut = index + 1
    if (!cuts.has(cut)) continue
    outcome.cuts += 1
    if (!disk.isSynced) outcome.unsynced += 1
    disk.restore(target, chooseLoss(part, outcome.cuts))
    const isSecretNeeded = cut > firstResponse
    if (isSecretNeeded && !existsSync(secretFileOf(file)))
      outcome.lost.push(`cut ${cut}: the secret is missing`)
    else if (isSecretNeeded && readFileSync(secretFileOf(file), 'utf8') !== secret)
      outcome.lost.push(`cut ${cut}: the secret is another one`)
    try {
      await migrate(file, schemaOf())
      const { lost, integrity } = verify(file, cut)
      if (lost.length > 0) outcome.lost.push(`cut ${cut}: ${lost[0]} (one of ${lost.length})`)
      if (integrity !== 'ok') outcome.damaged.push(`cut ${cut}: ${integrity}`)
    } catch (error) {
      outcome.damaged.push(`cut ${cut}: ${error instanceof Error ? error.message : error}`)
    }
    rmSync(target, { recursive: true })
  }
  outcome.unlikeTheFiles.push(...disk.differences(folder))
  return outcome
}

/** Syncs of the database (one per checkpoint), and restarts of the write-ahead log. */
const countCheckpoints = (recording: Recording): { checkpoints: number; resets: number } => {
  const database = inodes(recording, `/${DATABASE}`)
  const logs = inodes(recording, `/${DATABASE}-wal`)
  const { records } = recording
  return {
    checkpoints: records.filter(record => record.type === 'sync' && database.has(record.inode)).length,
    resets: records.filter(record => record.type === 'write' && record.offset === 0 && logs.has(record.inode))
      .length,
  }
}

export const run = async (part: FaultPart): Promise<Report> => {
  const report = new Report('Power cuts on SQLite')
  const library = process.platform === 'linux' ? compileRecorder(temporaryFolder(part.context)) : null
  if (library === null) {
    report.figure('skipped', process.platform === 'linux' ? 'no C compiler' : 'not on Linux')
    return report
  }

  const full = await record(part, library, [
    { requests: Number.POSITIVE_INFINITY, env: { RECORD_KILL: String(KILL_AFTER) } },
    { requests: REQUESTS.recovered, env: {} },
    { requests: REQUESTS.last, env: {} },
  ])
  const { checkpoints, resets } = countCheckpoints(full.recording)
  const acknowledged = full.recording.records.filter(({ type }) => type === 'response').length
  const outcome = await cutPower(part, full, chooseCuts(part, full.recording, CUTS))
  report.figure('recorded calls', full.recording.records.length - acknowledged)
  report.figure('responses', acknowledged)
  report.figure('syncs of the database / write-ahead logs begun', `${checkpoints} / ${resets}`)
  report.figure('power cuts', `${outcome.cuts}, ${outcome.unsynced} with something not synced`)
  report.failures('cuts that lost acknowledged writes', outcome.lost)
  report.failures('databases damaged', outcome.damaged)
  report.failures('files that the recording does not explain', outcome.unlikeTheFiles)
  report.failures('requests that failed', full.load.unexpected)
  report.expect(outcome.cuts === CUTS, `only ${outcome.cuts} cuts were made`)
  report.expect(checkpoints >= 5 && resets >= 5, 'too few checkpoints were recorded')

  const env = { NODE_OPTIONS: `--import=${join(import.meta.dirname, '../power/synchronous-normal.ts')}` }
  const normal = await record(part, library, [{ requests: REQUESTS.proof, env }])
  const proof = await cutPower(part, normal, chooseCuts(part, normal.recording, PROOF_CUTS))
  report.figure(
    'proof: cuts that lost writes with synchronous=NORMAL',
    `${proof.lost.length} of ${proof.cuts}`,
  )
  report.expect(
    proof.lost.length > 0,
    'cuts with synchronous=NORMAL have lost nothing: the test proves nothing',
  )
  report.failures('proof: databases damaged', proof.damaged)
  return report
}
