/** The log of record-writes.c: a process's file operations and responses, in one order. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Record =
  | { readonly type: 'create' | 'mkdir'; readonly inode: number; readonly path: string }
  | { readonly type: 'write'; readonly inode: number; readonly offset: number; readonly bytes: Buffer }
  | { readonly type: 'truncate'; readonly inode: number; readonly size: number }
  | { readonly type: 'sync'; readonly inode: number }
  | { readonly type: 'remove'; readonly path: string }
  | { readonly type: 'rename' | 'link'; readonly from: string; readonly to: string }
  /** The beginning of an HTTP response, recorded just before it was sent. */
  | { readonly type: 'response'; readonly port: number }

const HEAD_LENGTH = 24

const parse = (operation: string, inode: number, offset: number, bytes: Buffer): Record => {
  const path = bytes.toString()
  const [from = '', to = ''] = operation === 'R' || operation === 'L' ? path.split('\0') : []
  switch (operation) {
    case 'C':
      return { type: 'create', inode, path }
    case 'M':
      return { type: 'mkdir', inode, path }
    case 'W':
      return { type: 'write', inode, offset, bytes }
    case 'T':
      return { type: 'truncate', inode, size: offset }
    case 'S':
      return { type: 'sync', inode }
    case 'U':
      return { type: 'remove', path }
    case 'R':
      return { type: 'rename', from, to }
    case 'L':
      return { type: 'link', from, to }
    case 'A':
      return { type: 'response', port: inode }
    default:
      throw new Error(`the log has a record of the type ${operation}`)
  }
}

export interface Recording {
  readonly records: readonly Record[]
  /** The number of complete records when the log had this many bytes. */
  countAt(size: number): number
}

export const readRecording = (file: string): Recording => {
  const log = readFileSync(file)
  const records: Record[] = []
  const ends: number[] = []
  for (let at = 0; at < log.length; ) {
    const operation = String.fromCharCode(log.readUInt32LE(at))
    const begin = at + HEAD_LENGTH
    const end = begin + log.readUInt32LE(at + 4)
    const inode = Number(log.readBigUInt64LE(at + 8))
    const offset = Number(log.readBigUInt64LE(at + 16))
    records.push(parse(operation, inode, offset, log.subarray(begin, end)))
    ends.push(end)
    at = end
  }
  return {
    records,
    countAt(size) {
      let low = 0
      let high = ends.length
      while (low < high) {
        const middle = (low + high) >> 1
        if ((ends[middle] as number) <= size) low = middle + 1
        else high = middle
      }
      return low
    },
  }
}

const SOURCE = join(import.meta.dirname, 'record-writes.c')

/** Compiles the library into a folder. @returns its file; `null` without a C compiler. */
export const compileRecorder = (folder: string): string | null => {
  const library = join(folder, 'record-writes.so')
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE, '-ldl', '-lpthread'])
    return library
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
