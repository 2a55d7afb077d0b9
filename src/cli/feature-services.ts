/** The services of one feature, on the store that the environment or `--database` names. */
import { siteOf } from '../config/config.ts'
import { createFeatureServices, type Feature } from '../feature.ts'
import { NO_MAILS } from '../mail/mailer.ts'
import type { DatabaseOptions } from './options.ts'
import { printStatus } from './output.ts'
import { settings, withStore } from './store.ts'

const logger = { error: printStatus, warn: printStatus, info: printStatus }

/** @throws as `withStore`; errors of `use`. */
export const withFeatureServices = async <Services extends object>(
  feature: Feature<Services>,
  options: DatabaseOptions,
  use: (services: Services) => Promise<void>,
): Promise<void> => {
  const { publicUrl, webUrl, productName, isProduction } = siteOf(settings(options))
  const config = { publicUrl, webUrl, productName, isProduction }
  await withStore(options, ({ featureStores: stores, users }) => {
    const deps = { config, stores, mails: NO_MAILS, users, clock: Date.now, logger }
    return use(createFeatureServices(feature, deps) as Services)
  })
}
