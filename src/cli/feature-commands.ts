/** The commands of features. */
import type { Command } from 'commander'
import { checkFeatures } from '../check-features.ts'
import { createFeatureServices, type Feature } from '../feature.ts'
import { FEATURES } from '../features.ts'
import { NO_MAILS } from '../mail/mailer.ts'
import { printStatus } from './output.ts'
import { withStore } from './store.ts'

const logger = { error: printStatus, warn: printStatus, info: printStatus }

export const featureCommands = (program: Command): void => {
  checkFeatures(FEATURES)
  for (const feature of FEATURES as readonly Feature[])
    feature.commands?.(program, ({ database }, use) =>
      withStore(database === undefined ? {} : { database }, ({ featureStores, users }) =>
        use(
          createFeatureServices(feature, {
            stores: featureStores,
            mails: NO_MAILS,
            users,
            clock: Date.now,
            logger,
          }),
        ),
      ),
    )
}
