/** The organizations of a user, as a line of an import or export has them. */
import { Type } from '@sinclair/typebox'
import { INVALID_ROLE, isRole } from '#core/users/roles'
import { InputId, Strict } from '#http/validation/schemas'
import { MAX_ROLES, MaxMembers, Name, Slug } from './input-schemas.ts'
import { MAX_MEMBERSHIPS } from './organization.ts'

/** Any role, not only those of the settings: roles stay with their members when a setting changes. */
const Role = Type.String({
  violations: (text: string) => (isRole(text) ? [] : [INVALID_ROLE]),
  examples: ['member'],
})

export default {
  organizations: Type.Optional(
    Type.Array(
      Strict(
        {
          id: InputId,
          name: Name,
          slug: Slug,
          maxMembers: Type.Optional(MaxMembers),
          roles: Type.Array(Role, { minItems: 1, maxItems: MAX_ROLES, uniqueItems: true }),
          joinedAt: Type.Optional(Type.String({ format: 'date-time' })),
        },
        { title: 'ImportedMembership' },
      ),
      { maxItems: MAX_MEMBERSHIPS, description: 'Those that do not exist are created' },
    ),
  ),
}
