/** `organizations …`: organizations on the command line. */
import type { Command } from 'commander'
import { integer } from '#base/settings/readers'
import { OPERATOR } from '#core/audit-log/event'
import {
  commandGroup,
  nonEmpty,
  option,
  type StoreOptions,
  storeCommand,
  textList,
  validated,
} from '#feature/commands/options'
import { print, printNext, table } from '#feature/commands/output'
import type { WithServices } from '#feature/declaration'
import { MemberRoles, NewOrganization } from './input-schemas.ts'
import { type Members, serializeMember } from './members.ts'
import type { Member, Organization } from './organization.ts'
import { type Organizations, serializeOrganization } from './organizations.ts'

export interface OrganizationServices {
  readonly organizations: Organizations
  readonly organizationMembers: Members
}

interface PageOptions extends StoreOptions {
  readonly limit: number
  readonly cursor?: string
}

interface ListOptions extends PageOptions {
  readonly name?: string
  readonly slug?: string
}

interface CreateOptions extends StoreOptions {
  readonly name: string
  readonly slug?: string
}

interface AddOptions extends StoreOptions {
  readonly roles: readonly string[]
}

const COLUMNS = ['id', 'created', 'seats', 'slug', 'name']

const row = (organization: Organization): string[] => {
  const { id, createdAt, maxMembers, slug, name } = serializeOrganization(organization)
  return [id, createdAt, String(maxMembers ?? '-'), slug, name]
}

const MEMBER_COLUMNS = ['user', 'joined', 'roles', 'e-mail', 'name']

const memberRow = (member: Member): string[] => {
  const { userId, joinedAt, roles, email, firstName, lastName } = serializeMember(member, true)
  return [userId, joinedAt, roles.join(','), email ?? '', [firstName, lastName].filter(Boolean).join(' ')]
}

const limitOption = () => option('--limit <number>', 'how many at most', integer(1, 1_000)).default(100)

/** Adds the group `organizations`. Organizations are named by id or slug. */
export const organizationCommands = (
  program: Command,
  withServices: WithServices<OrganizationServices>,
): void => {
  const list = ({ limit, cursor, name, slug, ...options }: ListOptions): Promise<void> =>
    withServices(options, async ({ organizations }) => {
      const { results, nextCursor } = await organizations.listAll({ name, slug }, limit, cursor)
      const page = { results: results.map(serializeOrganization), nextCursor }
      print(options.json, page, table([COLUMNS, ...results.map(row)]))
      if (!options.json) printNext(nextCursor)
    })

  const show = (idOrSlug: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ organizations }) => {
      const found = await organizations.find(idOrSlug)
      print(options.json, serializeOrganization(found), table([COLUMNS, row(found)]))
    })

  const create = (owner: string, { name, slug, ...options }: CreateOptions): Promise<void> =>
    withServices(options, async ({ organizations }) => {
      const input = await validated({ name, ...(slug !== undefined && { slug }) }, () => NewOrganization)
      const user = await organizations.findUser(owner)
      const created = await organizations.create(user, input, null, OPERATOR)
      print(options.json, serializeOrganization(created), [created.id])
    })

  const members = (idOrSlug: string, { limit, cursor, ...options }: PageOptions): Promise<void> =>
    withServices(options, async ({ organizations, organizationMembers }) => {
      const { id } = await organizations.find(idOrSlug)
      const { results, nextCursor } = await organizationMembers.list(id, limit, cursor)
      const page = { results: results.map(member => serializeMember(member, true)), nextCursor }
      print(options.json, page, table([MEMBER_COLUMNS, ...results.map(memberRow)]))
      if (!options.json) printNext(nextCursor)
    })

  const addMember = (idOrSlug: string, user: string, { roles, ...options }: AddOptions): Promise<void> =>
    withServices(options, async ({ organizations, organizationMembers }) => {
      const { roles: checked } = await validated({ roles }, () => MemberRoles(organizations.roles))
      const { id } = await organizations.find(idOrSlug)
      const { id: userId } = await organizations.findUser(user)
      const { member } = await organizationMembers.put(id, userId, checked, OPERATOR)
      print(options.json, serializeMember(member, true), table([MEMBER_COLUMNS, memberRow(member)]))
    })

  const removeMember = (idOrSlug: string, user: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ organizations, organizationMembers }) => {
      const { id } = await organizations.find(idOrSlug)
      const { id: userId } = await organizations.findUser(user)
      await organizationMembers.remove(id, userId, null, OPERATOR)
      if (!options.json) print(false, null, [`The user ${userId} is no member of ${id} any more`])
    })

  const remove = (idOrSlug: string, options: StoreOptions): Promise<void> =>
    withServices(options, async ({ organizations }) => {
      const { id } = await organizations.find(idOrSlug)
      await organizations.remove(id, null, OPERATOR)
      await organizations.removeDeleted({ signal: new AbortController().signal })
      if (!options.json) print(false, null, [`The organization ${id} is deleted`])
    })

  const group = commandGroup(program, 'organizations').description('List, create and change organizations')
  storeCommand(group, 'list', 'List organizations')
    .addOption(option('--name <start>', 'those whose name begins so', nonEmpty))
    .addOption(option('--slug <start>', 'those whose slug begins so', nonEmpty))
    .addOption(limitOption())
    .option('--cursor <cursor>', 'the next page')
    .action(list)
  storeCommand(group, 'show <organization>', 'Show the organization with this id or slug').action(show)
  storeCommand(group, 'create <owner>', 'Create an organization of the user with this id or e-mail')
    .addOption(option('--name <name>', 'the name', nonEmpty).makeOptionMandatory())
    .addOption(option('--slug <slug>', 'the slug; by default one from the name', nonEmpty))
    .action(create)
  storeCommand(group, 'members <organization>', 'List the members of an organization')
    .addOption(limitOption())
    .option('--cursor <cursor>', 'the next page')
    .action(members)
  storeCommand(group, 'add-member <organization> <user>', 'Add a member, or change the roles of one')
    .addOption(
      option('--roles <roles>', 'the roles, separated by commas', textList).default(['member'], 'member'),
    )
    .action(addMember)
  storeCommand(group, 'remove-member <organization> <user>', 'Remove a member').action(removeMember)
  storeCommand(group, 'delete <organization>', 'Delete an organization, with its memberships').action(remove)
}
