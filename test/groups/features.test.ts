/** Features, and what follows the audit log. */
import '../audit-log.test.ts'
import '../features.test.ts'
import '../verifier.test.ts'
import '../webhooks.test.ts'
