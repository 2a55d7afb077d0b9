/** The commands of features. */
import type { Command } from 'commander'
import { allFeatures } from '../built-in-features.ts'
import { checkFeatures } from '../check-features.ts'
import {
  adminScopesOf,
  createFeatureServices,
  type Feature,
  userScopesOf,
  type WithServices,
} from '../feature.ts'
import type { DatabaseOptions } from './options.ts'
import { withStore } from './store.ts'

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

/** @throws as `withStore`; errors of `use`. */
export const withFeatureServices = <Services extends object>(
  feature: Feature<Services>,
  options: DatabaseOptions,
  use: (services: Services) => Promise<void>,
): Promise<void> =>
  withStore(options, ({ featureDeps }) => use(createFeatureServices(feature, featureDeps) as Services))
