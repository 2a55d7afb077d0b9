/** The commands of features. */
import type { Command } from 'commander'
import { allFeatures } from '../built-in-features.ts'
import { checkFeatures } from '../check-features.ts'
import { adminScopesOf, userScopesOf, type WithServices } from '../feature.ts'
import { withFeatureServices } from './feature-services.ts'

export const featureCommands = async (program: Command): Promise<void> => {
  const features = allFeatures()
  checkFeatures(features)
  const scopes = { user: userScopesOf(features), admin: adminScopesOf(features) }
  for (const feature of features) {
    const withServices: WithServices<object> = ({ database }, use) =>
      withFeatureServices(feature, database === undefined ? {} : { database }, use)
    await feature.commands?.(program, withServices, scopes)
  }
}
