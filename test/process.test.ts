/** The service as a process. Each file runs by itself as well. */
import './process/database-file.test.ts'
import './process/dev.test.ts'
import './process/log-output.test.ts'
import './process/shared.test.ts'
import './process/start.test.ts'
import './process/stop.test.ts'
