/** The commands of the core and of features. */
import type { Command } from 'commander'
import { adminScopesOf, createFeatureServices, eventSchemasOf, userScopesOf } from '#feature/assembly'
import { checkFeatures } from '#feature/checks'
import { explain } from '#feature/commands/failure'
import type { DatabaseOptions, Feature, WithServices } from '#feature/declaration'
import { allFeatures } from '#features/built-in'
import { copyCommand } from './copy.ts'
import { eventsCommand } from './events.ts'
import { keysCommands } from './keys.ts'
import { mailCommand } from './mail.ts'
import { seedCommand } from './seed.ts'
import { sessionsCommands } from './sessions.ts'
import { settingsCommand } from './settings.ts'
import { withStore } from './store.ts'
import { textsCommand } from './texts.ts'
import { usersCommands } from './users.ts'

/** The commands of the core, in the order of the help. */
const CORE_COMMANDS = [
  usersCommands,
  sessionsCommands,
  eventsCommand,
  keysCommands,
  copyCommand,
  seedCommand,
  settingsCommand,
  textsCommand,
  mailCommand,
]

export const coreCommands = (program: Command): void => {
  for (const add of CORE_COMMANDS) add(program)
}

const commandsBelow = ({ commands }: Command): readonly Command[] =>
  commands.flatMap(command => [command, ...commandsBelow(command)])

const remove = (command: Command): void => {
  const siblings = (command.parent?.commands ?? []) as Command[]
  siblings.splice(siblings.indexOf(command), 1)
}

/**
 * Adds the commands of features: all of one, or none if its `commands` fail. The others then still work.
 * @returns a sentence for each feature whose commands are missing.
 */
export const featureCommands = async (program: Command): Promise<readonly string[]> => {
  const features = allFeatures()
  checkFeatures(features)
  const declared = {
    userScopes: userScopesOf(features),
    adminScopes: adminScopesOf(features),
    eventTypes: Object.keys(eventSchemasOf(features)),
  }
  const failures: string[] = []
  for (const feature of features) {
    const before = new Set(commandsBelow(program))
    const withServices: WithServices<object> = (options, use) => withFeatureServices(feature, options, use)
    try {
      await feature.commands?.(program, withServices, declared)
    } catch (error) {
      failures.push(`The commands of the feature ${feature.name} are missing: ${explain(error)}`)
      for (const command of commandsBelow(program)) if (!before.has(command)) remove(command)
    }
  }
  return failures
}

/** @throws as `withStore`; errors of `use`. */
export const withFeatureServices = <Services extends object>(
  feature: Feature<Services>,
  options: DatabaseOptions,
  use: (services: Services) => Promise<void>,
): Promise<void> =>
  withStore(options, async ({ featureDeps }) =>
    use((await createFeatureServices(feature, featureDeps)) as Services),
  )
