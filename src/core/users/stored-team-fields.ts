/** The columns of the fields that a team adds. SQLite's writer thread imports this module. */
import type { FeatureMigration, StoredFeature } from '#storage/stored-feature'
import type { TeamField } from './field-kinds.ts'
import { TEAM_FIELDS } from './team-fields.ts'

/** Nullable and without a default, so that no row is written, and instances of the previous release leave it empty. */
const addColumn = ({ column, filter }: TeamField): FeatureMigration => ({
  sql: ({ text }) => [
    `ALTER TABLE "users" ADD COLUMN "${column}" ${text}`,
    ...(filter ? [`CREATE INDEX "users_by_${column}" ON "users" ("${column}", "id")`] : []),
  ],
})

/** Its migrations run behind those of the core, in a sequence of their own. */
export const teamFields = {
  name: 'team-fields',
  module: import.meta.url,
  migrations: Object.fromEntries(
    Object.values<TeamField>(TEAM_FIELDS).map(field => [field.ownMigration, addColumn(field)]),
  ),
} satisfies StoredFeature
