/** The cursors of consumers, as a feature. `consumers.ts` runs the consumers of all features. */
import { type DepsOf, defineFeature } from '../declaration.ts'
import { ConsumerCursors } from './cursors.ts'
import { storedConsumers } from './stored-consumers.ts'

export const consumers = defineFeature({
  ...storedConsumers,
  services: { consumerCursors: (deps: DepsOf<typeof storedConsumers>) => new ConsumerCursors(deps) },
  commands: async (program, withServices) => {
    const { consumerCommands } = await import('./commands.ts')
    consumerCommands(program, withServices)
  },
})
