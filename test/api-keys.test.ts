/** API keys (docs/design.md, "Machine callers"). */
import './api-keys/hostile-keys.test.ts'
import './api-keys/keys.test.ts'
import './api-keys/lifetime.test.ts'
import './api-keys/reauthentication.test.ts'
import './api-keys/records.test.ts'
import './api-keys/requests.test.ts'
import './api-keys/revocation.test.ts'
import './api-keys/scopes.test.ts'
