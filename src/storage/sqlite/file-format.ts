/** Reads the database and the WAL without SQLite (https://sqlite.org/fileformat2.html §1.3, §4.1). Numbers are big-endian. */
import { readSync } from 'node:fs'

export const HEADER_SIZE = 100
const WAL_HEADER_SIZE = 32
const FRAME_HEADER_SIZE = 24

const FRAME_SALTS = 8
const WAL_SALTS = 16
const SALTS_SIZE = 8

/** Magic, page size and WAL mode: bytes that never change while a store has the database open. */
const FIXED_SIZE = 24

/** The versions at the offsets 18 and 19: 2 is WAL mode. */
const isInWalMode = (header: Buffer): boolean => header[18] === 2 && header[19] === 2

/** How far a later stamp may be ahead: the first is random, so another database is unlikely to pass for a later state of this one. */
const MAX_STAMPS_AHEAD = 2 ** 20

/** @returns `undefined` when the file ends before `position + size`. */
export const readBytes = (fd: number, size: number, position: number): Buffer | undefined => {
  const bytes = Buffer.allocUnsafe(size)
  return readSync(fd, bytes, 0, size, position) === size ? bytes : undefined
}

/** SQLite's `user_version`, which `stamp` in `database.ts` increments. */
const stampOf = (header: Buffer): number => header.readInt32BE(60)

/** The size of a database by its header, in bytes. */
export const sizeOf = (header: Buffer): number =>
  // The page size 65,536 does not fit into the field and is stored as 1.
  header.readUInt32BE(28) * (header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16))

export const isSameOrLater = (before: Buffer, now: Buffer): boolean => {
  const ahead = (stampOf(now) - stampOf(before)) | 0
  return (
    before.subarray(0, FIXED_SIZE).equals(now.subarray(0, FIXED_SIZE)) &&
    ahead >= 0 &&
    ahead < MAX_STAMPS_AHEAD
  )
}

const pageSizeOf = (walHeader: Buffer): number => walHeader.readUInt32BE(8)

const frameAt = (index: number, pageSize: number): number =>
  WAL_HEADER_SIZE + index * (FRAME_HEADER_SIZE + pageSize)

/** Whether the last of `frames` frames is in the file, is a commit, and has the salts of the WAL's header. */
export const endsWithCommit = (walFd: number, frames: number, pageSize: number): boolean => {
  const header = readBytes(walFd, WAL_HEADER_SIZE, 0)
  const frame = readBytes(walFd, FRAME_HEADER_SIZE, frameAt(frames - 1, pageSize))
  if (header === undefined || frame === undefined) return false
  const salts = header.subarray(WAL_SALTS, WAL_SALTS + SALTS_SIZE)
  return salts.equals(frame.subarray(FRAME_SALTS, FRAME_SALTS + SALTS_SIZE)) && frame.readUInt32BE(4) > 0
}

/** Bytes that checksums cover. */
const WAL_HEADER_SUMMED = 24
const FRAME_HEADER_SUMMED = 8

/** Checksums read words in big-endian order; little-endian is one less. */
const BIG_ENDIAN_CHECKSUMS = 0x377f0683

type Checksum = readonly [number, number]

/** Continues SQLite's checksum (§4.2) over more bytes. */
const checksum = (bytes: Buffer, [first, second]: Checksum, isBigEndian: boolean): Checksum => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let [a, b] = [first, second]
  for (let at = 0; at < bytes.length; at += 8) {
    a = (a + view.getUint32(at, !isBigEndian) + b) >>> 0
    b = (b + view.getUint32(at + 4, !isBigEndian) + a) >>> 0
  }
  return [a, b]
}

const hasChecksum = (bytes: Buffer, at: number, [a, b]: Checksum): boolean =>
  bytes.readUInt32BE(at) === a && bytes.readUInt32BE(at + 4) === b

interface WalContent {
  readonly hasCommits: boolean
  /** `undefined` when no commit has a stamp. */
  readonly stamps: { readonly first: number; readonly last: number } | undefined
}

const EMPTY_WAL: WalContent = { hasCommits: false, stamps: undefined }

/** Reads a WAL as SQLite recovers it after a power cut: up to the last commit before the first invalid frame. */
const readWal = (walFd: number): WalContent => {
  const header = readBytes(walFd, WAL_HEADER_SIZE, 0)
  if (header === undefined) return EMPTY_WAL
  const isBigEndian = header.readUInt32BE(0) === BIG_ENDIAN_CHECKSUMS
  let sum = checksum(header.subarray(0, WAL_HEADER_SUMMED), [0, 0], isBigEndian)
  if (!hasChecksum(header, WAL_HEADER_SUMMED, sum)) return EMPTY_WAL
  const salts = header.subarray(WAL_SALTS, WAL_SALTS + SALTS_SIZE)
  const pageSize = pageSizeOf(header)
  let content = EMPTY_WAL
  let stamps: WalContent['stamps']
  for (let index = 0; ; index += 1) {
    const frame = readBytes(walFd, FRAME_HEADER_SIZE + pageSize, frameAt(index, pageSize))
    if (!frame?.subarray(FRAME_SALTS, FRAME_SALTS + SALTS_SIZE).equals(salts)) return content
    const page = frame.subarray(FRAME_HEADER_SIZE)
    sum = checksum(frame.subarray(0, FRAME_HEADER_SUMMED), sum, isBigEndian)
    sum = checksum(page, sum, isBigEndian)
    if (!hasChecksum(frame, FRAME_SALTS + SALTS_SIZE, sum)) return content
    if (frame.readUInt32BE(0) === 1) stamps = { first: stamps?.first ?? stampOf(page), last: stampOf(page) }
    if (frame.readUInt32BE(4) > 0) content = { hasCommits: true, stamps }
  }
}

/**
 * Whether a WAL may belong to a database: its first stamp is the next one, or a checkpoint has already copied some of its pages. The stamp 0
 * is that of a database without stamps. @param header `undefined` for an empty file.
 */
export const walMatches = (header: Buffer | undefined, walFd: number): boolean => {
  const { hasCommits, stamps } = readWal(walFd)
  if (header === undefined || !isInWalMode(header)) return !hasCommits
  if (stamps === undefined || stampOf(header) === 0) return true
  const ahead = (stampOf(header) - (stamps.first - 1)) | 0
  return ahead >= 0 && ahead <= stamps.last - stamps.first + 1
}
