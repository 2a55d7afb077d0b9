/** The command line. Each file can also be run alone. */
import './cli/commands.test.ts'
import './cli/usage.test.ts'
import './cli/texts.test.ts'
import './cli/mail.test.ts'
