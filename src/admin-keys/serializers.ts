import { serializeApiKey } from '../api-keys/serializers.ts'
import type { AdminKey } from '../auth/admin-key.ts'

/** As an API key, and with the key that created it. */
export const serializeAdminKey = ({ createdBy, ...key }: AdminKey) => ({ ...serializeApiKey(key), createdBy })
