/** Features by their modules: the functions of a feature cannot be sent to the writer thread, so it imports them. */
import { FeatureError, type StoredFeature } from '../stored-feature.ts'

export interface FeatureModule {
  readonly name: string
  readonly module: string
}

const exportsOf = async ({ name, module }: FeatureModule): Promise<readonly unknown[]> => {
  try {
    return Object.values(await import(module))
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new FeatureError(`The module ${module} of the feature ${name} cannot be imported: ${message}`, {
      cause,
    })
  }
}

const importFeature = async (declared: FeatureModule): Promise<StoredFeature> => {
  const { name, module } = declared
  const exported = (await exportsOf(declared)) as readonly (Partial<FeatureModule> | null | undefined)[]
  const feature = exported.find(value => value?.module === module && value.name === name)
  if (feature === undefined)
    throw new FeatureError(
      `The module ${module} does not export the feature ${name}. Declare it there with module: import.meta.url, and export it`,
    )
  return feature as StoredFeature
}

export const importFeatures = (modules: readonly FeatureModule[]): Promise<readonly StoredFeature[]> =>
  Promise.all(modules.map(importFeature))

/**
 * Checks that the writer thread finds the features, with their operations.
 * @throws {FeatureError} when a module does not export its feature, or exports another one with its name.
 */
export const assertImportable = async (features: readonly StoredFeature[]): Promise<void> => {
  const imported = await importFeatures(features)
  for (const [index, { name, module, operations = {} }] of features.entries()) {
    const other = Object.entries(operations).find(
      ([operation, value]) => imported[index]?.operations?.[operation] !== value,
    )
    if (other !== undefined)
      throw new FeatureError(
        `The module ${module} exports a feature ${name} with another operation ${other[0]} than the one that is listed`,
      )
  }
}
