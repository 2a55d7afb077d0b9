/** Features by their modules: the functions of a feature cannot be sent to the writer thread, so it imports them. */
import { FeatureError } from '../feature-error.ts'
import type { StoredFeature } from '../features.ts'

export interface FeatureModule {
  readonly name: string
  /** The URL of a module that exports the feature. */
  readonly module: string
}

const importFeature = async ({ name, module }: FeatureModule): Promise<StoredFeature> => {
  const exported: unknown[] = Object.values(await import(module))
  const feature = exported.find(
    value =>
      typeof value === 'object' &&
      value !== null &&
      'module' in value &&
      value.module === module &&
      'name' in value &&
      value.name === name,
  )
  if (feature === undefined)
    throw new FeatureError(
      `The module ${module} does not export the feature ${name}. Declare it there with module: import.meta.url, and export it`,
    )
  return feature as StoredFeature
}

/** @throws {FeatureError} when a module does not export its feature. */
export const importFeatures = (modules: readonly FeatureModule[]): Promise<readonly StoredFeature[]> =>
  Promise.all(modules.map(importFeature))
