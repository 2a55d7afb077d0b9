/** The commands of features. */
import type { Command } from 'commander'
import { allFeatures } from '../built-in-features.ts'
import { checkFeatures } from '../check-features.ts'
import { withFeatureServices } from './feature-services.ts'

export const featureCommands = (program: Command): void => {
  const features = allFeatures()
  checkFeatures(features)
  for (const feature of features)
    feature.commands?.(program, ({ database }, use) =>
      withFeatureServices(feature, database === undefined ? {} : { database }, use),
    )
}
