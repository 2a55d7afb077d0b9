/** The features that every service has, and how they are joined with those that a team adds. */

import type { AccountMails } from '#core/accounts/mails'
import { storedPendingSignUps } from '#core/email-confirmation/stored-pending-sign-ups'
import { storedReturnTargets } from '#core/return-targets/stored-return-targets'
import { teamFields } from '#core/users/stored-team-fields'
import { consumers } from '#feature/consumers/feature'
import type { Feature, MailsOf, ServicesOf, SettingNamesOf } from '#feature/declaration'
import { storedJobs } from '#feature/jobs/stored-jobs'
import { adminKeys } from './admin-keys/feature.ts'
import { apiKeys } from './api-keys/api-keys.ts'
import { consoleFeature } from './console/console.ts'
import { emailCodes } from './email-codes/email-codes.ts'
import { forwardAuth } from './forward-auth/feature.ts'
import { identities } from './identities/identities.ts'
import { oauth } from './oauth/feature.ts'
import { organizations } from './organizations/feature.ts'
import { FEATURES } from './own.ts'
import { passkeys } from './passkeys/passkeys.ts'
import { totp } from './totp/totp.ts'
import { webhooks } from './webhooks/feature.ts'

/** The features of the service itself. Their migrations and tables come before those of other features. */
export const BUILT_IN_FEATURES = [
  apiKeys,
  adminKeys,
  totp,
  passkeys,
  emailCodes,
  identities,
  storedPendingSignUps,
  storedReturnTargets,
  storedJobs,
  consumers,
  webhooks,
  organizations,
  oauth,
  forwardAuth,
  consoleFeature,
  // A database of a service without such fields knows nothing of them.
  ...(Object.keys(teamFields.migrations).length === 0 ? [] : [teamFields]),
] as const satisfies readonly Feature[]

/**
 * Every feature of a service: the built-in ones, those of `src/features/own.ts`, then those of a host application. What follows from features,
 * follows from this list: only this module imports `src/features/own.ts`.
 * @param added by a host application.
 */
export const allFeatures = (added: readonly Feature[] = []): readonly Feature[] => [
  ...BUILT_IN_FEATURES,
  ...FEATURES,
  ...added,
]

/** The mails of every service: of the core and of the built-in features. */
export type BuiltInMails = AccountMails & MailsOf<typeof BUILT_IN_FEATURES>

/** What {@link allFeatures} adds to `app.services`. */
export type FeatureServices = ServicesOf<typeof BUILT_IN_FEATURES> & ServicesOf<typeof FEATURES>

export type FeatureSettingName = SettingNamesOf<typeof BUILT_IN_FEATURES> | SettingNamesOf<typeof FEATURES>
