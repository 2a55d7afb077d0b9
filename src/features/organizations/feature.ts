/** Organizations, as a feature. */
import { defineFeature } from '#feature/declaration'
import { BulkMemberships } from './bulk-memberships.ts'
import { definitions } from './definitions.ts'
import { everyOrganizationGate, organizationGate } from './gate.ts'
import { Invitations } from './invitations.ts'
import { Members } from './members.ts'
import { MAX_MEMBERSHIPS } from './organization.ts'
import { Organizations } from './organizations.ts'
import type { PassedOwnership } from './stored-members.ts'

export const organizations = defineFeature({
  ...definitions,
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  console: () => import('./console-pages.ts'),
  guards: { organization: deps => organizationGate(deps), everyOrganization: () => everyOrganizationGate },
  memberships: ({ store }) => ({
    list: userId => store.listOrganizationsOf(userId, null, MAX_MEMBERSHIPS),
    find: (userId, id) => store.findOrganizationOf(userId, id),
  }),
  services: {
    organizations: deps => new Organizations(deps),
    organizationMembers: deps => new Members(deps),
    organizationInvitations: deps => new Invitations(deps),
  },
  bulkProperty: {
    schema: () => import('./bulk-schema.ts'),
    create: deps => new BulkMemberships(deps),
  },
  async commands(program, withServices) {
    const { organizationCommands } = await import('./commands.ts')
    organizationCommands(program, withServices)
  },
  jobs: { removeDeleted: { every: 60_000, run: (deps, run) => new Organizations(deps).removeDeleted(run) } },
  async userRemoved({ findUser, mails }, passed: readonly PassedOwnership[]) {
    for (const { userId, organizationName } of passed) {
      const user = await findUser(userId)
      if (user !== undefined)
        mails.send('organizationOwnershipPassed', user, { organization: organizationName })
    }
  },
})
