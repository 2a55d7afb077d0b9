/** What is read of SQLite's files past SQLite (https://sqlite.org/fileformat2.html §1.3, §4.1): numbers are big-endian. */
import { readSync } from 'node:fs'

export const HEADER_SIZE = 100
export const WAL_HEADER_SIZE = 32
export const FRAME_HEADER_SIZE = 24

/** In a frame's header; a header of the log has its salts at {@link WAL_SALTS}. */
const FRAME_SALTS = 8
const WAL_SALTS = 16
const SALTS_SIZE = 8

/** Magic, page size, and that the file is in WAL mode: what never changes while a store has it open. */
const FIXED_SIZE = 24

/** File formats of reading and writing (offsets 18 and 19) that say so. */
const isWal = (header: Buffer): boolean => header[18] === 2 && header[19] === 2

/**
 * How far the second stamp may be ahead of the first one. Each database starts at a random one, so that of two databases
 * hardly ever one seems to be a later state of the other.
 */
const STAMPS_AHEAD = 2 ** 20

/** `undefined` when the file ends before. */
export const readBytes = (fd: number, size: number, position: number): Buffer | undefined => {
  const bytes = Buffer.allocUnsafe(size)
  return readSync(fd, bytes, 0, size, position) === size ? bytes : undefined
}

/** The database's stamp: SQLite's `user_version`, which the service counts up. */
export const stampOf = (header: Buffer): number => header.readInt32BE(60)

/** The size in bytes that the database says it has. */
export const sizeOf = (header: Buffer): number =>
  // 1 stands for 65,536, which does not fit.
  header.readUInt32BE(28) * (header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16))

/** Whether a checkpoint may have made the second header of a database from the first one. */
export const isLater = (before: Buffer, now: Buffer): boolean => {
  const ahead = (stampOf(now) - stampOf(before)) | 0
  return (
    before.subarray(0, FIXED_SIZE).equals(now.subarray(0, FIXED_SIZE)) && ahead >= 0 && ahead < STAMPS_AHEAD
  )
}

const pageSizeOf = (walHeader: Buffer): number => walHeader.readUInt32BE(8)

const frameAt = (index: number, pageSize: number): number =>
  WAL_HEADER_SIZE + index * (FRAME_HEADER_SIZE + pageSize)

/** Whether the last of so many frames is where it was written: a commit, of the same log as its header. */
export const endsWithCommit = (fd: number, frames: number, pageSize: number): boolean => {
  const header = readBytes(fd, WAL_HEADER_SIZE, 0)
  const frame = readBytes(fd, FRAME_HEADER_SIZE, frameAt(frames - 1, pageSize))
  if (header === undefined || frame === undefined) return false
  const salts = header.subarray(WAL_SALTS, WAL_SALTS + SALTS_SIZE)
  return salts.equals(frame.subarray(FRAME_SALTS, FRAME_SALTS + SALTS_SIZE)) && frame.readUInt32BE(4) > 0
}

/** The first and the last stamp among a log's frames; `undefined` where none has one. */
const stampsIn = (fd: number): { first: number; last: number } | undefined => {
  const header = readBytes(fd, WAL_HEADER_SIZE, 0)
  if (header === undefined) return undefined
  const salts = header.subarray(WAL_SALTS, WAL_SALTS + SALTS_SIZE)
  const pageSize = pageSizeOf(header)
  let stamps: { first: number; last: number } | undefined
  for (let index = 0; ; index += 1) {
    const position = frameAt(index, pageSize)
    const frame = readBytes(fd, FRAME_HEADER_SIZE, position)
    // What a log that was longer has left behind has other salts.
    if (!frame?.subarray(FRAME_SALTS, FRAME_SALTS + SALTS_SIZE).equals(salts)) return stamps
    if (frame.readUInt32BE(0) !== 1) continue
    const page = readBytes(fd, HEADER_SIZE, position + FRAME_HEADER_SIZE)
    if (page === undefined) return stamps
    stamps = { first: stamps?.first ?? stampOf(page), last: stampOf(page) }
  }
}

/**
 * Whether a log may continue a database: its first stamp is the next one, or the database has some of its pages already. A
 * database of 0 has never been stamped.
 * @param header of the database; `undefined` for an empty file.
 */
export const mayContinue = (header: Buffer | undefined, walFd: number): boolean => {
  const stamps = stampsIn(walFd)
  if (header === undefined || !isWal(header))
    return readBytes(walFd, WAL_HEADER_SIZE + FRAME_HEADER_SIZE, 0) === undefined
  if (stamps === undefined || stampOf(header) === 0) return true
  const ahead = (stampOf(header) - (stamps.first - 1)) | 0
  return ahead >= 0 && ahead <= stamps.last - stamps.first + 1
}
