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

/** The first 24 bytes of a log's header, and the first 8 of a frame's, are part of the checksum. */
const WAL_HEADER_SUMMED = 24
const FRAME_HEADER_SUMMED = 8

/** The magic number of a log whose checksums read words in big-endian order; one less, in little-endian order. */
const BIG_ENDIAN_SUMS = 0x377f0683

type Sums = readonly [number, number]

/** SQLite's checksum (§4.2) continued over more bytes. */
const sumOf = (bytes: Buffer, [first, second]: Sums, isBigEndian: boolean): Sums => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let [a, b] = [first, second]
  for (let at = 0; at < bytes.length; at += 8) {
    a = (a + view.getUint32(at, !isBigEndian) + b) >>> 0
    b = (b + view.getUint32(at + 4, !isBigEndian) + a) >>> 0
  }
  return [a, b]
}

const hasSums = (bytes: Buffer, at: number, [a, b]: Sums): boolean =>
  bytes.readUInt32BE(at) === a && bytes.readUInt32BE(at + 4) === b

interface Log {
  /** Whether there is a commit that SQLite would recover. */
  readonly hasCommits: boolean
  /** The first and the last stamp of what is committed; `undefined` where nothing has one. */
  readonly stamps: { readonly first: number; readonly last: number } | undefined
}

const EMPTY_LOG: Log = { hasCommits: false, stamps: undefined }

/** A log as SQLite would recover it: up to the last commit before the first frame that is not whole, as after a power cut. */
const readLog = (fd: number): Log => {
  const header = readBytes(fd, WAL_HEADER_SIZE, 0)
  if (header === undefined) return EMPTY_LOG
  const isBigEndian = header.readUInt32BE(0) === BIG_ENDIAN_SUMS
  let sums = sumOf(header.subarray(0, WAL_HEADER_SUMMED), [0, 0], isBigEndian)
  if (!hasSums(header, WAL_HEADER_SUMMED, sums)) return EMPTY_LOG
  const salts = header.subarray(WAL_SALTS, WAL_SALTS + SALTS_SIZE)
  const pageSize = pageSizeOf(header)
  let log = EMPTY_LOG
  let stamps: Log['stamps']
  for (let index = 0; ; index += 1) {
    const frame = readBytes(fd, FRAME_HEADER_SIZE + pageSize, frameAt(index, pageSize))
    if (!frame?.subarray(FRAME_SALTS, FRAME_SALTS + SALTS_SIZE).equals(salts)) return log
    const page = frame.subarray(FRAME_HEADER_SIZE)
    sums = sumOf(frame.subarray(0, FRAME_HEADER_SUMMED), sums, isBigEndian)
    sums = sumOf(page, sums, isBigEndian)
    if (!hasSums(frame, FRAME_SALTS + SALTS_SIZE, sums)) return log
    if (frame.readUInt32BE(0) === 1) stamps = { first: stamps?.first ?? stampOf(page), last: stampOf(page) }
    if (frame.readUInt32BE(4) > 0) log = { hasCommits: true, stamps }
  }
}

/**
 * Whether a log may continue a database: its first stamp is the next one, or the database has some of its pages already. A
 * database of 0 has never been stamped.
 * @param header of the database; `undefined` for an empty file.
 */
export const mayContinue = (header: Buffer | undefined, walFd: number): boolean => {
  const { hasCommits, stamps } = readLog(walFd)
  if (header === undefined || !isWal(header)) return !hasCommits
  if (stamps === undefined || stampOf(header) === 0) return true
  const ahead = (stampOf(header) - (stamps.first - 1)) | 0
  return ahead >= 0 && ahead <= stamps.last - stamps.first + 1
}
