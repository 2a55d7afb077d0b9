/** What the store runs for return targets. The writer thread of SQLite imports this module. */

import { type Query, query, type Steps } from '#storage/operations/operation'
import { invalidatesNothing, type Write } from '#storage/operations/write'
import { type FeatureStore, type StoredFeature, table } from '#storage/stored-feature'

/** The URL that a mailed link, or the callback of a provider, leads back to. */
export interface StoredReturnTarget {
  /** The digest of the secret that it belongs to. */
  readonly id: string
  /** The URL, encrypted with that secret: the store alone reveals none. */
  readonly url: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

interface ReturnTargetsTable {
  id: string
  url: string
  expires_at: number
}

function* addReturnTarget({ id, url, expiresAt }: StoredReturnTarget): Steps<Write<void>> {
  yield {
    text: 'INSERT INTO return_targets (id, url, expires_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING',
    values: [id, url, expiresAt],
  }
  return invalidatesNothing(undefined)
}

const findReturnTarget = (id: string, now: number): Query<string | null> =>
  query(
    {
      name: 'return-target',
      text: 'SELECT url FROM return_targets WHERE id = $1 AND expires_at > $2',
      values: [id, now],
    },
    ([row]: readonly Pick<ReturnTargetsTable, 'url'>[]) => row?.url ?? null,
  )

export const storedReturnTargets = {
  name: 'return-targets',
  module: import.meta.url,
  migrations: {
    '0001_return_targets': {
      sql: ({ text }) => [
        `create table "return_targets" (
          "id" ${text} primary key,
          "url" ${text} not null,
          "expires_at" bigint not null
        )`,
        'create index "return_targets_by_expires_at" on "return_targets" ("expires_at")',
      ],
    },
  },
  tables: {
    return_targets: table<ReturnTargetsTable>({
      owner: null,
      key: 'id',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  operations: { addReturnTarget },
  reads: { findReturnTarget },
} satisfies StoredFeature

export type ReturnTargetStore = FeatureStore<
  typeof storedReturnTargets.operations,
  typeof storedReturnTargets.reads
>
