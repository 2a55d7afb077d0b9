/** Users by the thousand: exports, imports, seeds, copies. Each file runs by itself as well. */
import './transfers/copy-again.test.ts'
import './transfers/copy-process.test.ts'
import './transfers/copy.test.ts'
import './transfers/export-import-commands.test.ts'
import './transfers/export.test.ts'
import './transfers/import-streams.test.ts'
import './transfers/import.test.ts'
import './transfers/seed.test.ts'
