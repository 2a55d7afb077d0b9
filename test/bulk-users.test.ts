/** Many users at once: import, export. Each file can also be run alone. */
import './bulk-users/export.test.ts'
import './bulk-users/import-origins.test.ts'
import './bulk-users/import-streams.test.ts'
import './bulk-users/import.test.ts'
import './bulk-users/passkeys.test.ts'
