/** The command line. Each file can also be run alone. */
import './cli/admin-keys.test.ts'
import './cli/commands.test.ts'
import './cli/features.test.ts'
import './cli/processes.test.ts'
import './cli/running-service.test.ts'
import './cli/usage.test.ts'
