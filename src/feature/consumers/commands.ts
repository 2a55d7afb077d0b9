/** `consumers list|reset|skip`: the cursors of consumers. */
import type { Command } from 'commander'
import type { Reader } from '#base/settings/readers'
import { COUNTED } from '#core/audit-log/listing'
import { CommandError } from '../commands/failure.ts'
import { commandGroup, option, type StoreOptions, storeCommand, timestamp } from '../commands/options.ts'
import { print, table } from '../commands/output.ts'
import type { WithServices } from '../declaration.ts'
import type { ConsumerCursors, ConsumerState, CursorTarget } from './cursors.ts'

const COLUMNS = ['consumer', 'waiting', 'moved', 'failures', 'failed event', 'error']

const serialize = ({ updatedAt, ...state }: ConsumerState) => ({
  ...state,
  updatedAt: new Date(updatedAt).toISOString(),
})

const row = (state: ConsumerState): string[] => {
  const { name, waiting, updatedAt, failures, failedEvent, error } = serialize(state)
  const count = waiting === COUNTED ? `${COUNTED} or more` : String(waiting)
  return [name, count, updatedAt, String(failures), failedEvent ?? '-', error ?? '']
}

const target: Reader<CursorTarget> = text => (text === 'start' || text === 'end' ? text : timestamp(text))

interface ResetOptions extends StoreOptions {
  readonly to: CursorTarget
}

export const consumerCommands = (
  program: Command,
  withServices: WithServices<{ consumerCursors: ConsumerCursors }>,
): void => {
  const list = (options: StoreOptions): Promise<void> =>
    withServices(options, async ({ consumerCursors }) => {
      const states = await consumerCursors.list()
      print(options.json, { results: states.map(serialize) }, table([COLUMNS, ...states.map(row)]))
    })

  const reset = (name: string, { to, ...options }: ResetOptions): Promise<void> =>
    withServices(options, async ({ consumerCursors }) => {
      if (!(await consumerCursors.reset(name, to)))
        throw new CommandError(`There is no consumer ${name}: see consumers list`)
      if (!options.json) print(false, null, [`The consumer ${name} continues from the ${to}`])
    })

  const skip = (name: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ consumerCursors }) => {
      const event = await consumerCursors.skip(name)
      if (event === null)
        throw new CommandError(`The consumer ${name} fails for no event: see consumers list`)
      print(options.json, { event }, [`The consumer ${name} leaves out the event ${event}`])
    })

  const consumers = commandGroup(program, 'consumers').description('Consumers of events, and their cursors')
  storeCommand(consumers, 'list', 'List the consumers of events, and how far each is').action(list)
  storeCommand(
    consumers,
    'reset <name>',
    'Set the cursor of a consumer: later events are handled, also again',
  )
    .addOption(
      option(
        '--to <place>',
        'start, end, or a timestamp such as 2026-01-31T09:30:00Z',
        target,
      ).makeOptionMandatory(),
    )
    .action(reset)
  storeCommand(
    consumers,
    'skip <name>',
    'Leave out the event that the handler of a consumer fails for',
  ).action(skip)
}
