/** What a service is made of, from the list of its features: settings, scopes, services, jobs and the rest of what they declare. */
import { type TProperties, Type } from '@sinclair/typebox'
import { type DeclaredError, ServiceError } from '#base/errors'
import { newId } from '#base/ids'
import type { Setting } from '#base/settings/readers'
import type { FeatureMetric } from '#base/statistics/metric'
import type { BulkFactor, BulkProperty } from '#core/accounts/bulk-factors'
import type { ProtectedRole } from '#core/accounts/protected-role'
import type { SecondFactor } from '#core/accounts/second-factor'
import { CORE_SIGN_IN_METHODS, type SignInMethods } from '#core/accounts/sign-in-methods'
import type { NamedSignInMethod } from '#core/accounts/sign-ins'
import { type Actor, type AuditEvent, EVENTS, type EventSchemas } from '#core/audit-log/event'
import { ADMIN_SCOPES, type ScopeDescriptions, USER_SCOPES } from '#core/auth/scopes'
import type { PublicKey } from '#core/auth/signing-keys'
import type { MailKinds, MailSender } from '#core/mail/kinds'
import type { WindowLimit } from '#core/rate-limits/limits'
import type { User } from '#core/users/user'
import type { FinishRemoval } from '#core/users/users'
import type { ResourceMetadata } from '#http/request-authentication'
import type { RouteGuard } from '#http/route-guards'
import type { OpenRateLimit } from '#storage/rate-limit'
import type { HostConsumer } from './consumers/consumers.ts'
import type { Feature } from './declaration.ts'
import type { AnyDeps, BaseDeps, CoreDeps, Memberships } from './deps.ts'
import type { NamedTask } from './jobs/background-tasks.ts'
import type { ScheduledJob } from './jobs/jobs.ts'

export const eventSchemasOf = (features: readonly Feature[]): EventSchemas =>
  Object.assign({}, EVENTS, signInEvent(features), ...features.map(({ events }) => events))

/** `user.signed-in`, with the details of every method. */
const signInEvent = (features: readonly Feature[]) => {
  const methods = features.flatMap(({ signInMethods = {} }) => Object.values(signInMethods))
  const details: TProperties = Object.assign({}, ...methods.map(method => method.details))
  const properties = { ...EVENTS['user.signed-in'].properties, ...details }
  return { 'user.signed-in': Type.Object(properties) }
}

export const userScopesOf = (features: readonly Feature[]): ScopeDescriptions =>
  Object.assign({}, USER_SCOPES, ...features.map(({ userScopes }) => userScopes))

export const adminScopesOf = (features: readonly Feature[]): ScopeDescriptions =>
  Object.assign({}, ADMIN_SCOPES, ...features.map(({ adminScopes }) => adminScopes))

export const settingsOf = (features: readonly Feature[]): Readonly<Record<string, Setting>> =>
  Object.assign({}, ...features.map(({ settings }) => settings))

export const metricsOf = (features: readonly Feature[]): Readonly<Record<string, FeatureMetric>> =>
  Object.assign({}, ...features.map(({ metrics }) => metrics))

/**
 * The sign-in methods of the core and of features.
 * @param settings the values of the settings of all features.
 */
export const signInMethodsOf = (
  features: readonly Feature[],
  settings: Readonly<Record<string, unknown>>,
): readonly NamedSignInMethod[] => [
  ...namedMethods(CORE_SIGN_IN_METHODS, null, settings),
  ...features.flatMap(({ name, signInMethods = {} }) => namedMethods(signInMethods, name, settings)),
]

const namedMethods = (
  methods: SignInMethods<AnyDeps['settings']>,
  feature: string | null,
  settings: Readonly<Record<string, unknown>>,
): readonly NamedSignInMethod[] =>
  Object.entries(methods).map(([name, { isEnabled, rows, ...method }]) => ({
    ...method,
    name,
    feature,
    isEnabled: isEnabled?.(settings) ?? true,
    rows: rows?.(settings) ?? null,
  }))

/** What the factors of features have in imports and exports of users, by the name of the property of `credentials`. */
export const credentialSchemasOf = async (features: readonly Feature[]): Promise<TProperties> => {
  const modules = await Promise.all(features.map(({ bulkFactor }) => bulkFactor?.credentials()))
  return Object.assign({}, ...modules.map(module => module?.default))
}

export const bulkFactorsOf = (
  features: readonly Feature[],
  stores: FeatureServicesDeps['stores'],
  keyring: CoreDeps['keyring'],
): readonly BulkFactor[] =>
  features.flatMap(({ name, bulkFactor }) =>
    bulkFactor === undefined ? [] : [bulkFactor.create({ store: stores[name] as AnyDeps['store'], keyring })],
  )

/** The properties that features add to users in imports and exports, each optional. */
export const bulkPropertySchemasOf = async (features: readonly Feature[]): Promise<TProperties> => {
  const modules = await Promise.all(features.map(({ bulkProperty }) => bulkProperty?.schema()))
  return Object.assign({}, ...modules.map(module => module?.default))
}

export const bulkPropertiesOf = (
  features: readonly Feature[],
  stores: FeatureServicesDeps['stores'],
  clock: CoreDeps['clock'],
): readonly BulkProperty[] =>
  features.flatMap(({ name, bulkProperty }) =>
    bulkProperty === undefined
      ? []
      : [
          bulkProperty.create({
            store: stores[name] as AnyDeps['store'],
            clock,
            newEvent: newEventAt(clock),
          }),
        ],
  )

/** The rate limits of features, per client address. */
export const rateLimitsOf = (features: readonly Feature[]): Readonly<Record<string, WindowLimit>> =>
  Object.assign({}, ...features.map(({ rateLimits }) => rateLimits))

interface SharedDeps {
  /** By the name of the feature, see `Storage.features`. */
  readonly stores: Readonly<Record<string, object>>
  readonly mails: MailSender<MailKinds>
  /** The values of the settings of all features, by name. */
  readonly settings: Readonly<Record<string, unknown>>
  /** `FeatureMetrics.recorders` */
  readonly metrics: Readonly<Record<string, object>>
}

/** What the second factor is created with. */
export type EarlyFeatureDeps = BaseDeps & SharedDeps

export type FeatureServicesDeps = CoreDeps & SharedDeps

/** @returns a function that makes events, now. */
const newEventAt =
  (clock: () => number) =>
  <UserId extends string | null>(
    type: string,
    actor: Actor,
    userId: UserId,
    details: AuditEvent['details'] = null,
  ): AuditEvent<UserId> => {
    const at = clock()
    return { id: newId(at), at, type, actor, userId, details }
  }

/** @returns the dependencies of one feature. Parts of other features are in them too: names are unique. */
const depsOf = <Shared extends EarlyFeatureDeps>({ name }: Feature, { stores, ...shared }: Shared) => ({
  ...shared,
  metrics: shared.metrics as AnyDeps['metrics'],
  // A counter of the same name belongs to the core, a route, or another feature.
  openRateLimit: (options: Parameters<OpenRateLimit>[0]) =>
    shared.openRateLimit({ ...options, name: `${name}.${options.name}` }),
  store: stores[name] as AnyDeps['store'],
  newEvent: newEventAt(shared.clock),
})

/** @throws {Error} if no feature provides it. */
export const secondFactorOf = (features: readonly Feature[], shared: EarlyFeatureDeps): SecondFactor => {
  const provider = features.find(({ secondFactor }) => secondFactor !== undefined)
  const secondFactor = provider?.secondFactor?.(depsOf(provider, shared))
  if (secondFactor === undefined) throw new Error('No feature provides the second factor')
  return secondFactor
}

/** The role that a feature protects; `null` without one. */
export const protectedRoleOf = (
  features: readonly Feature[],
  settings: Readonly<Record<string, unknown>>,
): ProtectedRole | null =>
  features
    .map(({ protectedRole }) => protectedRole?.(settings as AnyDeps['settings']) ?? null)
    .find(found => found !== null) ?? null

/** Tells features of a removal, by `userRemoved`. The removal is stored: what fails is logged. */
export const finishRemovalOf =
  (features: readonly Feature[], shared: EarlyFeatureDeps): FinishRemoval =>
  outcome => {
    if ('refusal' in outcome) throw new ServiceError(refusalErrorOf(features, outcome.refusal))
    for (const feature of features) {
      const of = outcome.outcomes[feature.name]
      if (of === undefined || feature.userRemoved === undefined) continue
      const told = async () => feature.userRemoved?.(depsOf(feature, shared), of as never)
      told().catch((err: unknown) =>
        shared.logger.error({ err, feature: feature.name }, 'a feature failed after the removal of a user'),
      )
    }
  }

/** @throws {Error} if no feature declares it: a bug. */
const refusalErrorOf = (features: readonly Feature[], name: string): DeclaredError => {
  const error = features.map(({ errors }) => errors?.[name]).find(each => each !== undefined)
  if (error === undefined) throw new Error(`No feature declares the error ${name}, which refuses a removal`)
  return error
}

/** The public keys of tokens that features sign. */
export const publicKeysOf = (
  features: readonly Feature[],
  shared: FeatureServicesDeps,
): readonly PublicKey[] => features.flatMap(feature => feature.publicKeys?.(depsOf(feature, shared)) ?? [])

/** The organizations of users; `null` if no feature has them. */
export const membershipsOf = (
  features: readonly Feature[],
  shared: FeatureServicesDeps,
): Memberships | null => {
  const provider = features.find(({ memberships }) => memberships !== undefined)
  return provider?.memberships?.(depsOf(provider, shared)) ?? null
}

/** Where resources describe themselves; `null` if no feature says it. */
export const resourceMetadataOf = (
  features: readonly Feature[],
  shared: FeatureServicesDeps,
): ResourceMetadata | null => {
  const provider = features.find(({ resourceMetadata }) => resourceMetadata !== undefined)
  return provider?.resourceMetadata?.(depsOf(provider, shared)) ?? null
}

/** The guards of features, by the property of `config` that declares them. */
export const routeGuardsOf = (
  features: readonly Feature[],
  shared: FeatureServicesDeps,
): Readonly<Record<string, RouteGuard>> =>
  Object.fromEntries(
    features.flatMap(feature =>
      Object.entries(feature.guards ?? {}).map(([name, create]) => [name, create(depsOf(feature, shared))]),
    ),
  )

export const createFeatureServices = async (
  feature: Feature,
  shared: FeatureServicesDeps,
): Promise<object> => {
  const deps = depsOf(feature, shared)
  const factories = (feature.services ?? {}) as Readonly<Record<string, (deps: AnyDeps) => unknown>>
  const created = Object.entries(factories).map(async ([service, create]) => [service, await create(deps)])
  return Object.fromEntries(await Promise.all(created))
}

/** The functions that list the methods of users, of all features. */
export const methodListsOf = (features: readonly Feature[], shared: FeatureServicesDeps) =>
  features.flatMap(feature => {
    const { listMethods } = feature
    return listMethods === undefined ? [] : [(user: User) => listMethods(depsOf(feature, shared), user)]
  })

export const jobsOf = (feature: Feature, shared: FeatureServicesDeps): readonly ScheduledJob[] => {
  const deps = depsOf(feature, shared)
  return Object.entries(feature.jobs ?? {})
    .filter(([, { isEnabled }]) => isEnabled?.(deps) ?? true)
    .map(([name, { every, run }]) => ({
      name: `${feature.name}.${name}`,
      every,
      run: jobRun => run(deps, jobRun),
    }))
}

export const backgroundTasksOf = (feature: Feature, shared: FeatureServicesDeps): readonly NamedTask[] => {
  const deps = depsOf(feature, shared)
  return Object.entries(feature.backgroundTasks ?? {}).map(([name, run]) => ({
    name: `${feature.name}.${name}`,
    run: signal => run(deps, signal),
  }))
}

export const consumersOf = (feature: Feature, shared: FeatureServicesDeps): readonly HostConsumer[] => {
  const deps = depsOf(feature, shared)
  return Object.entries(feature.consumers ?? {})
    .filter(([, { isEnabled }]) => isEnabled?.(deps) ?? true)
    .map(([name, { handle, types }]) => ({
      ...(types && { types }),
      name: `${feature.name}.${name}`,
      handle: (event, delivery) => handle(deps, event, delivery),
    }))
}
