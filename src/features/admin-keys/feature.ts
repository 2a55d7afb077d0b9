/** Admin keys of the store, as a feature. */
import { defineFeature } from '#feature/declaration'
import { AdminKeys, parts } from './admin-keys.ts'

export const adminKeys = defineFeature({
  ...parts,
  services: { adminKeys: deps => new AdminKeys(deps) },
  async commands(program, withServices, { adminScopes }) {
    const { adminKeyCommands } = await import('./commands.ts')
    adminKeyCommands(program, withServices, adminScopes)
  },
})
