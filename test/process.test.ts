/** The service as a process. Each file can also be run alone. */
import './process/database-file.test.ts'
import './process/dev.test.ts'
import './process/idle.test.ts'
import './process/log-output.test.ts'
import './process/shared-sqlite-file.test.ts'
import './process/start.test.ts'
import './process/stop.test.ts'
