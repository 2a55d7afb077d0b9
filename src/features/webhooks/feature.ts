/** Webhooks, as a feature. */
import { defineFeature } from '#feature/declaration'
import { definitions } from './definitions.ts'
import { Webhooks } from './webhooks.ts'

export const webhooks = defineFeature({
  ...definitions,
  services: { webhooks: deps => new Webhooks(deps) },
  backgroundTasks: {
    async deliver(deps, signal) {
      const { Deliveries } = await import('./deliveries.ts')
      await new Deliveries(deps, signal).run()
    },
  },
  async commands(program, withServices, { eventTypes }) {
    const { webhookCommands } = await import('./commands.ts')
    webhookCommands(program, withServices, eventTypes)
  },
})
