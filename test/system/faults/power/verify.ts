/** Compares a database after a power cut with the acknowledged writes. */
import Database from 'better-sqlite3'
import type { Acknowledgement, Write, WrittenUser } from './load.ts'
import type { Recording } from './recording.ts'

/** Positions are counts of records: a cut at n comes after the nth. */
export interface Timeline {
  /** @returns the first cut at which a write must be there; infinite if it was not acknowledged. */
  acknowledgedAt(write: Write): number
  /** @returns the last cut at which it cannot be there. */
  sentAt(write: Write): number
}

const keyOf = (run: number, port: number): string => `${run}:${port}`

/** @param runs the length of the log (bytes) when each process was started. */
export const timeline = (recording: Recording, runs: readonly number[]): Timeline => {
  const begins = runs.map(size => recording.countAt(size))
  const responses = new Map<string, number[]>()
  let run = 0
  for (const [position, record] of recording.records.entries()) {
    while (run + 1 < begins.length && position >= (begins[run + 1] as number)) run += 1
    if (record.type !== 'response') continue
    const key = keyOf(run, record.port)
    responses.set(key, [...(responses.get(key) ?? []), position])
  }
  const positionOf = ({ run, port, index }: Acknowledgement): number => {
    const position = responses.get(keyOf(run, port))?.[index]
    if (position === undefined) throw new Error('a response was received that is not in the recording')
    return position
  }
  return {
    acknowledgedAt: ({ acknowledgement }) =>
      acknowledgement === null ? Number.POSITIVE_INFINITY : positionOf(acknowledgement) + 1,
    sentAt: ({ sentAt }) => recording.countAt(sentAt),
  }
}

interface Row {
  readonly email: string
  readonly last_name: string
  readonly disabled: number
}

export interface Found {
  readonly lost: readonly string[]
  /** `ok`, or the errors that SQLite reports. */
  readonly integrity: string
}

/** Checks databases against the acknowledgements of the load. */
export const verifier = (users: readonly WrittenUser[], timeline: Timeline) => {
  const at = (write: Write) => ({ from: timeline.sentAt(write), by: timeline.acknowledgedAt(write) })
  const expectations = users.map(({ email, writes, sessions }) => ({
    email,
    writes: writes.map(write => ({ kind: write.kind, ...at(write) })),
    sessions: sessions.map(({ id, opened, ended }) => ({
      id,
      opened: at(opened),
      ended: ended === null ? { from: Number.POSITIVE_INFINITY, by: Number.POSITIVE_INFINITY } : at(ended),
    })),
  }))

  return (file: string, cut: number): Found => {
    const db = new Database(file, { readonly: true, fileMustExist: true })
    try {
      const rows = db.prepare<[], Row>('SELECT email, last_name, disabled FROM users').all()
      const byEmail = new Map(rows.map(row => [row.email, row]))
      const ids = new Set(db.prepare('SELECT id FROM sessions').pluck().all())
      const lost: string[] = []
      for (const { email, writes, sessions } of expectations) {
        const acknowledged = writes.filter(({ by }) => by <= cut).length
        const possible = writes.filter(({ from }) => from < cut).length
        const row = byEmail.get(email)
        const removedAt = writes.findIndex(({ kind }) => kind === 'remove')
        if (row === undefined) {
          const mayBeGone = acknowledged === 0 || (removedAt >= 0 && removedAt < possible)
          if (!mayBeGone) lost.push(`${email} is missing`)
        } else {
          const shown = Number(row.last_name)
          if (removedAt >= 0 && removedAt < acknowledged) lost.push(`${email} was removed and is there`)
          else if (shown < acknowledged || shown > possible)
            lost.push(`${email} shows write ${shown}, not one of ${acknowledged} to ${possible}`)
          else if ((row.disabled === 1) !== (writes[shown - 1]?.kind === 'disable'))
            lost.push(`${email} is half changed`)
        }
        const ends = writes.find(({ kind }) => kind !== 'set')
        for (const { id, opened, ended } of sessions) {
          const mayBeEnded = ended.from < cut || (ends !== undefined && ends.from < cut)
          const isEnded = ended.by <= cut || (ends !== undefined && ends.by <= cut)
          if (opened.by <= cut && !mayBeEnded && !ids.has(id)) lost.push(`a session of ${email} is missing`)
          if (isEnded && ids.has(id)) lost.push(`a session of ${email} was ended and is there`)
        }
      }
      return { lost, integrity: String(db.pragma('integrity_check', { simple: true })) }
    } finally {
      db.close()
    }
  }
}
