/** The stored cursors of consumers as a feature, with the commands for them. `consumers.ts` runs the consumers of all features. */
import { type DepsOf, defineFeature } from '../feature.ts'
import { ConsumerCursors } from './cursors.ts'
import { storedConsumers } from './stored-consumers.ts'

type ConsumersDeps = DepsOf<typeof storedConsumers>

export const consumers = defineFeature({
  ...storedConsumers,
  services: { consumerCursors: (deps: ConsumersDeps) => new ConsumerCursors(deps) },
  commands: async (program, withServices) => {
    const { consumerCommands } = await import('./commands.ts')
    consumerCommands(program, withServices)
  },
})
