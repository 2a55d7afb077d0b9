import { toIso, toIsoOrNull } from '../users/serializers.ts'
import type { Passkey } from './stored-passkeys.ts'

export const serializePasskey = ({ id, name, transports, backedUp, createdAt, lastUsedAt }: Passkey) => ({
  id,
  name,
  transports,
  backedUp,
  createdAt: toIso(createdAt),
  lastUsedAt: toIsoOrNull(lastUsedAt),
})
