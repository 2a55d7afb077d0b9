/**
 * A folder on a disk that loses power. Synced data survives: bytes and size of a file, entries of a folder. Any part of
 * unsynced data may survive. This is what POSIX promises, which is less than what common file systems do: there, a synced
 * file has its entry as well.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Random } from '../../../support/random.ts'
import type { Record } from './recording.ts'

/** What happens to unsynced writes. */
export interface Loss {
  /** Whether a change of an entry or of a size survives. */
  keep(): boolean
  /** The byte ranges of a write at this offset that survive. */
  parts(offset: number, length: number): Iterable<readonly [begin: number, end: number]>
}

export const NOTHING_LOST: Loss = { keep: () => true, parts: (_, length) => [[0, length]] }

export const ALL_LOST: Loss = { keep: () => false, parts: () => [] }

/** Each write survives or not. */
export const someLost = (random: Random, share: number): Loss => ({
  keep: () => random.next() < share,
  parts: (_, length) => (random.next() < share ? [[0, length]] : []),
})

/** Each sector of each write survives or not. */
export const torn = (random: Random, share: number, sector: number): Loss => ({
  keep: () => random.next() < share,
  *parts(offset, length) {
    for (let begin = 0; begin < length; ) {
      const end = Math.min(length, begin + sector - ((offset + begin) % sector))
      if (random.next() < share) yield [begin, end]
      begin = end
    }
  },
})

class Bytes {
  #buffer = Buffer.alloc(0)
  #size = 0

  get content(): Buffer {
    return this.#buffer.subarray(0, this.#size)
  }

  resize(size: number): void {
    if (size > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(size, 2 * this.#buffer.length))
      this.#buffer.copy(larger, 0, 0, this.#size)
      this.#buffer = larger
    }
    if (size < this.#size) this.#buffer.fill(0, size, this.#size)
    this.#size = size
  }

  write(offset: number, bytes: Buffer): void {
    if (offset + bytes.length > this.#size) this.resize(offset + bytes.length)
    bytes.copy(this.#buffer, offset)
  }

  copy(): Bytes {
    const copy = new Bytes()
    copy.write(0, this.content)
    return copy
  }
}

type FileChange = Extract<Record, { type: 'write' | 'truncate' }>

class File {
  readonly #durable = new Bytes()
  #pending: FileChange[] = []

  get isSynced(): boolean {
    return this.#pending.length === 0
  }

  change(change: FileChange): void {
    this.#pending.push(change)
  }

  sync(): void {
    for (const change of this.#pending) this.#apply(this.#durable, change, NOTHING_LOST)
    this.#pending = []
  }

  content(loss: Loss): Buffer {
    const bytes = this.#durable.copy()
    for (const change of this.#pending) this.#apply(bytes, change, loss)
    return bytes.content
  }

  #apply(target: Bytes, change: FileChange, loss: Loss): void {
    if (change.type === 'truncate') {
      if (loss.keep()) target.resize(change.size)
      return
    }
    for (const [begin, end] of loss.parts(change.offset, change.bytes.length))
      target.write(change.offset + begin, change.bytes.subarray(begin, end))
  }
}

type Entries = Map<string, File | Folder>

class Folder {
  readonly #durable: Entries = new Map()
  #pending: ((entries: Entries) => void)[] = []

  get isSynced(): boolean {
    return this.#pending.length === 0
  }

  change(change: (entries: Entries) => void): void {
    this.#pending.push(change)
  }

  sync(): void {
    for (const change of this.#pending) change(this.#durable)
    this.#pending = []
  }

  entries(loss: Loss): Entries {
    const entries = new Map(this.#durable)
    for (const change of this.#pending) if (loss.keep()) change(entries)
    return entries
  }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))

const restore = (folder: Folder, path: string, loss: Loss): void => {
  mkdirSync(path, { recursive: true })
  for (const [name, node] of folder.entries(loss)) {
    if (node instanceof Folder) restore(node, join(path, name), loss)
    else writeFileSync(join(path, name), node.content(loss))
  }
}

const listFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && !entry.name.endsWith('-shm'))
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length))
    .sort()

export class Disk {
  readonly #root = new Folder()
  /** The state that the running process sees. */
  readonly #byPath: Entries = new Map([['', this.#root]])
  readonly #byInode = new Map<number, File | Folder>()

  /** @param rootInode of the recorded folder, which exists and is durable. */
  constructor(rootInode: number) {
    this.#byInode.set(rootInode, this.#root)
  }

  apply(record: Record): void {
    switch (record.type) {
      case 'create':
      case 'mkdir': {
        const node = record.type === 'create' ? new File() : new Folder()
        this.#byInode.set(record.inode, node)
        this.#add(record.path, node)
        break
      }
      case 'write':
      case 'truncate': {
        const file = this.#byInode.get(record.inode)
        if (!(file instanceof File)) throw new Error('a write to a file that was never created')
        file.change(record)
        break
      }
      case 'sync':
        this.#byInode.get(record.inode)?.sync()
        break
      case 'link':
        this.#add(record.to, this.#at(record.from))
        break
      case 'rename': {
        const node = this.#at(record.from)
        if (folderOf(record.from) !== folderOf(record.to)) throw new Error('a rename between two folders')
        this.#byPath.delete(record.from)
        this.#byPath.set(record.to, node)
        this.#folder(record.to).change(entries => {
          entries.delete(nameOf(record.from))
          entries.set(nameOf(record.to), node)
        })
        break
      }
      case 'remove':
        this.#byPath.delete(record.path)
        this.#folder(record.path).change(entries => entries.delete(nameOf(record.path)))
        break
    }
  }

  /** Whether a power cut now can lose anything. */
  get isSynced(): boolean {
    return [...this.#byPath.values()].every(node => node.isSynced)
  }

  /** Writes the folder in its state after a power cut. */
  restore(folder: string, loss: Loss): void {
    restore(this.#root, folder, loss)
  }

  /** Files that differ from a folder: none, if the recording is complete. */
  differences(folder: string): string[] {
    const files = new Map(
      [...this.#byPath].flatMap(([path, node]) => (node instanceof File ? [[path, node] as const] : [])),
    )
    const paths = new Set([...files.keys(), ...listFiles(folder)])
    return [...paths].filter(path => {
      const file = files.get(path)
      if (file === undefined || !listFiles(folder).includes(path)) return true
      return !file.content(NOTHING_LOST).equals(readFileSync(join(folder, path)))
    })
  }

  #add(path: string, node: File | Folder): void {
    this.#byPath.set(path, node)
    this.#folder(path).change(entries => entries.set(nameOf(path), node))
  }

  #at(path: string): File | Folder {
    const node = this.#byPath.get(path)
    if (node === undefined) throw new Error(`the recording has no ${path}`)
    return node
  }

  #folder(path: string): Folder {
    const folder = this.#at(folderOf(path))
    if (!(folder instanceof Folder)) throw new Error(`${folderOf(path)} is no folder`)
    return folder
  }
}
