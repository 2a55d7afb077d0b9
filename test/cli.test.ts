/** The command line. Each file runs by itself as well. */
import './cli/accounts.test.ts'
import './cli/command-line.test.ts'
import './cli/users.test.ts'
