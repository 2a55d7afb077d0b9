/** Entry point of the command line. */
import { extname } from 'node:path'
import { Command, CommanderError } from 'commander'
import { EXIT_CODES, exitCode, explain, withoutArguments } from '#feature/commands/failure'
import { exitOnBrokenPipe, printStatus } from '#feature/commands/output'
import { coreCommands, featureCommands } from '#process/cli/commands'
import { loadEnvironment } from '#process/config/read-settings'
import packageJson from '../package.json' with { type: 'json' }

const program = new Command('gatehouse')
  .description(
    'Tools for the operator of a Gatehouse service. They use the store of the environment, or of --database',
  )
  .version(packageJson.version, '-V, --version', 'print the version')
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(withoutArguments(text)) })
  .addHelpText('afterAll', `\n${EXIT_CODES}`)

const isPackaged = extname(import.meta.filename) === '.js'

/** Adds `gatehouse start` to the help of the package. `src/bin.ts` starts the service before the command line is loaded. */
const startCommand = (program: Command): void => {
  if (isPackaged) program.command('start').description('Start the service; without a command, too')
}

exitOnBrokenPipe()

/** Why a command may be unknown. */
const OF_HOSTS = 'Commands of features that a host application adds are not part of the command gatehouse'

let missing: readonly string[] = []
try {
  startCommand(program)
  coreCommands(program)
  missing = [...(await featureCommands(program)), ...(isPackaged ? [OF_HOSTS] : [])]
  loadEnvironment()
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) printStatus(explain(error))
  else if (error.code === 'commander.unknownCommand') for (const sentence of missing) printStatus(sentence)
  process.exitCode = exitCode(error)
}
