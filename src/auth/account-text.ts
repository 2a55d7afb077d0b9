/** The serialized user of the account route's responses. */
import { serializeAccount } from '../users/serializers.ts'
import type { User } from '../users/user.ts'
import { copyString } from './copy-string.ts'

/**
 * The JSON of {@link serializeAccount} up to `lastRequestAt`, which is the last property. Copied, because every response would copy a
 * slice.
 */
export const accountTextOf = (user: User): string =>
  copyString(JSON.stringify(serializeAccount(user, null)).slice(0, -'null}'.length))
