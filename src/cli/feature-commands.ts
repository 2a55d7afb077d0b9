/** The commands of features. */
import type { Command } from 'commander'
import { allFeatures } from '../built-in-features.ts'
import { checkFeatures } from '../check-features.ts'
import { createFeatureServices } from '../feature.ts'
import { NO_MAILS } from '../mail/mailer.ts'
import { printStatus } from './output.ts'
import { withStore } from './store.ts'

const logger = { error: printStatus, warn: printStatus, info: printStatus }

export const featureCommands = (program: Command): void => {
  const features = allFeatures()
  checkFeatures(features)
  for (const feature of features)
    feature.commands?.(program, ({ database }, use) =>
      withStore(database === undefined ? {} : { database }, ({ featureStores, users, reauthentication }) =>
        use(
          createFeatureServices(feature, {
            stores: featureStores,
            mails: NO_MAILS,
            users,
            reauthentication,
            clock: Date.now,
            logger,
          }),
        ),
      ),
    )
}
