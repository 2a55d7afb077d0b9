/** Exports every user in the order of creation, page by page. No connection is held between two pages. */
import type { BulkUserStore } from '../../accounts/bulk-user-store.ts'
import { START, selectUser, toUser, type UserRow } from '../rows.ts'
import type { Database } from './database.ts'

const NEXT_USERS = `${selectUser('password_hash')} WHERE (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3`

/** Users of a page. Converting them blocks the event loop for about three milliseconds. */
const PAGE = 500

export const exporter =
  (database: Database): BulkUserStore['exportUsers'] =>
  async after => {
    const { key, id } = after ?? START
    const rows = await database.read<UserRow & { password_hash: string }>({
      name: 'export',
      text: NEXT_USERS,
      values: [key, id, PAGE],
    })
    return rows.map(row => ({ ...toUser(row), passwordHash: row.password_hash }))
  }
