/** Admin keys as JSON, for HTTP and the command line. */
import { serializeApiKey } from '../api-keys/serializers.ts'
import type { AdminKey } from '../auth/admin-key.ts'
import type { CreatedAdminKey } from './admin-keys.ts'

/** As an API key, and with the key that created it. */
export const serializeAdminKey = ({ createdBy, ...key }: AdminKey) => ({ ...serializeApiKey(key), createdBy })

export const serializeCreatedAdminKey = ({ token, adminKey }: CreatedAdminKey) => ({
  adminKey: token,
  key: serializeAdminKey(adminKey),
})
