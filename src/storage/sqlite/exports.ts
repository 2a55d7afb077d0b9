/** Every user in order of creation, a page at a time, each in a turn of its own. */
import type { BulkUserStore, PortableUser } from '../../accounts/bulk-users.ts'
import type { Position } from '../../users/listing.ts'
import { START, selectUser, toUser, type UserRow } from '../rows.ts'
import type { Reader } from './reader.ts'
import type { Task, TimeSlicer } from './time-slicer.ts'

const NEXT_USERS = `${selectUser('password_hash')} WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`

/** Some two milliseconds of the event loop, with what is then made of them. */
const PAGE = 200

function* page(reader: Reader, after: Position | null): Task<readonly PortableUser[]> {
  // Also before the first slice: a client that takes them fast enough would have no turn between two pages.
  yield
  const { key, id } = after ?? START
  return reader
    .rows<UserRow & { password_hash: string }>(NEXT_USERS, key, id, PAGE)
    .map(row => ({ ...toUser(row), passwordHash: row.password_hash }))
}

export const exporter =
  (reader: Reader, timeSlicer: TimeSlicer): BulkUserStore['exportUsers'] =>
  after =>
    timeSlicer.run(page(reader, after))
