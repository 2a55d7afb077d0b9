/** The services of one feature, on the store that the environment or `--database` names. */
import { createFeatureServices, type Feature } from '../feature.ts'
import type { DatabaseOptions } from './options.ts'
import { withStore } from './store.ts'

/** @throws as `withStore`; errors of `use`. */
export const withFeatureServices = <Services extends object>(
  feature: Feature<Services>,
  options: DatabaseOptions,
  use: (services: Services) => Promise<void>,
): Promise<void> =>
  withStore(options, ({ featureDeps }) => use(createFeatureServices(feature, featureDeps) as Services))
