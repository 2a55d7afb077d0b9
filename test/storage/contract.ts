/**
 * The contract of every storage engine (docs/design.md, "Storage"), as tests. Each engine's test file runs it with its `open`. Reads are
 * always awaited, since engines across a network respond asynchronously.
 */
import type { Test } from 'tap'
import { accounts } from './contract/accounts.ts'
import { apiKeys } from './contract/api-keys.ts'
import { bulkUsers } from './contract/bulk-users.ts'
import { cachedLastRequests } from './contract/cached-last-requests.ts'
import { changes } from './contract/changes.ts'
import { cleanUp } from './contract/clean-up.ts'
import { emailTokens } from './contract/email-tokens.ts'
import { events } from './contract/events.ts'
import { filters } from './contract/filters.ts'
import type { Open, Part } from './contract/fixtures.ts'
import { lastRequests } from './contract/last-requests.ts'
import { lists } from './contract/lists.ts'
import { manyUsers } from './contract/many-users.ts'
import { openAndClose } from './contract/open-and-close.ts'
import { rateLimits } from './contract/rate-limits.ts'
import { removal } from './contract/removal.ts'
import { search } from './contract/search.ts'
import { sessions } from './contract/sessions.ts'
import { userRecord } from './contract/user-record.ts'

const PARTS: Record<string, Part> = {
  accounts,
  userRecord,
  sessions,
  apiKeys,
  changes,
  emailTokens,
  events,
  removal,
  lastRequests,
  cachedLastRequests,
  lists,
  filters,
  manyUsers,
  search,
  rateLimits,
  bulkUsers,
  cleanUp,
  openAndClose,
}

/** Runs the whole contract; titles start with the engine's name. */
export const storageContract = async (t: Test, engineName: string, open: Open): Promise<void> => {
  for (const [name, part] of Object.entries(PARTS)) {
    await t.test(`${engineName}: ${name}`, t => part(t, open))
  }
}
