/** The commands of features. */
import type { Command } from 'commander'
import { allFeatures } from '../built-in-features.ts'
import { checkFeatures } from '../check-features.ts'
import { siteOf } from '../config/config.ts'
import { createFeatureServices } from '../feature.ts'
import { NO_MAILS } from '../mail/mailer.ts'
import { printStatus } from './output.ts'
import { settings, withStore } from './store.ts'

const logger = { error: printStatus, warn: printStatus, info: printStatus }

export const featureCommands = (program: Command): void => {
  const features = allFeatures()
  checkFeatures(features)
  for (const feature of features)
    feature.commands?.(program, async ({ database }, use) => {
      const options = database === undefined ? {} : { database }
      const config = siteOf(settings(options))
      await withStore(options, ({ featureStores: stores, users, reauthentication }) =>
        use(
          createFeatureServices(feature, {
            ...{ config, stores, mails: NO_MAILS, users, reauthentication },
            ...{ clock: Date.now, logger },
          }),
        ),
      )
    })
}
