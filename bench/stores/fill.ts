import { openSeedStore } from '#core/store/open'
import { allFeatures } from '#features/built-in'
import type { StorageLocation } from '#storage/location'
import { LIMITS, samples } from './sample-users.ts'

/** Creates a store with so many users, each with a session. */
export const fill = async (location: StorageLocation, users: number): Promise<void> => {
  const store = await openSeedStore(location, allFeatures())
  for (const slice of samples(users)) await store.add(slice, LIMITS.idle)
  await store.finish()
  await store.close()
}
