/** The look-up of sessions and keys on SQLite. Two statements take less time than a join, see `USER_VALUES`. */
import { bindingsOf } from '#storage/sqlite/operation-runner'
import type { Reader } from '#storage/sqlite/reader'
import type { FoundSession } from '../store/store.ts'
import { selectUser, toUser, type UserRow } from '../users/user-rows.ts'
import type { AdminKey } from './admin-key.ts'
import type { FoundApiKey } from './api-key.ts'
import {
  type ClientRow,
  type ClientTokenQueries,
  type FoundClient,
  type FoundGrant,
  type GrantRow,
  toClient,
  toGrant,
} from './client-tokens.ts'
import {
  ADMIN_KEY_COLUMNS,
  type AdminKeyRow,
  API_KEY_COLUMNS,
  type ApiKeyRow,
  toAdminKey,
  toApiKey,
} from './key-rows.ts'
import { SESSION_COLUMNS, type SessionRow, toSession } from './session-rows.ts'

const FIND_SESSION = `SELECT user_key, ${SESSION_COLUMNS.join(', ')} FROM sessions WHERE id = ?`
const FIND_API_KEY = `SELECT user_key, ${API_KEY_COLUMNS.join(', ')} FROM api_keys WHERE digest = ?`
const FIND_ADMIN_KEY = `SELECT ${ADMIN_KEY_COLUMNS.join(', ')} FROM admin_keys WHERE digest = ?`
const FIND_USER_BY_KEY = `${selectUser()} WHERE key = ?`

interface Owned {
  readonly user_key: number
}

/** @param clientTokens `null`: there are none. */
export const credentialReads = (reader: Reader, clientTokens: ClientTokenQueries | null) => {
  const userOf = ({ user_key }: Owned) => reader.get<UserRow>(FIND_USER_BY_KEY, user_key)
  return {
    findSession(id: string): FoundSession | undefined {
      const row = reader.get<SessionRow & Owned>(FIND_SESSION, id)
      const user = row && userOf(row)
      return user && { session: toSession(row, user.id), user: toUser(user), userKey: row.user_key }
    },

    findApiKey(digest: string): FoundApiKey | undefined {
      const row = reader.get<ApiKeyRow & Owned>(FIND_API_KEY, digest)
      const user = row && userOf(row)
      return user && { apiKey: toApiKey(row), user: toUser(user), userKey: row.user_key }
    },

    findAdminKey(digest: string): AdminKey | undefined {
      const row = reader.get<AdminKeyRow>(FIND_ADMIN_KEY, digest)
      return row && toAdminKey(row)
    },

    findGrant(id: string, tokenId: string): FoundGrant | undefined {
      if (clientTokens === null) return undefined
      const row = reader.get<GrantRow>(clientTokens.grant, bindingsOf([id, tokenId]))
      const user = row && userOf(row)
      return user && { grant: toGrant(row), user: toUser(user), userKey: row.user_key }
    },

    findClient(id: string, tokenId: string): FoundClient | undefined {
      if (clientTokens === null) return undefined
      const row = reader.get<ClientRow>(clientTokens.client, bindingsOf([id, tokenId]))
      return row && toClient(row)
    },
  }
}
