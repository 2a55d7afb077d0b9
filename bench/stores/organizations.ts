/** Organizations for a store with users, without HTTP. */
import { idOf, runAll, series } from './generated-rows.ts'

/** Adds organizations, and makes each user a member of so many of them. */
export const addOrganizations = (url: string, organizations: number, each: number): Promise<void> =>
  runAll(url, [
    `WITH RECURSIVE ${series('numbers', organizations)}
      INSERT INTO organizations (id, slug, name, search_name, created_at, updated_at, deleted_at)
      SELECT ${idOf(url, '01900000', 'i')}, 'team-' || i, 'Team ' || i, 'team ' || i, 1, 1, 0 FROM numbers`,
    `WITH RECURSIVE ${series('numbers', each)}
      INSERT INTO organization_members (id, organization_id, user_key, roles, rank, created_at, updated_at)
      SELECT ${idOf(url, '01900000', `key * ${each} + i`)}, ${idOf(url, '01900000', `(key * ${each} + i) % ${organizations}`)}, key,
        '["member"]', 2, 1, 1
      FROM users CROSS JOIN numbers`,
  ])
