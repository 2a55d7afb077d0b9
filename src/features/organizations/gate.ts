/**
 * The gate of organizations: `config: { organization: ['admin'] }` of a private route whose URL has `:organizationId`. A warm request costs
 * two look-ups in memory: the user's memberships, and the organization. Both are evicted with the write that changes them. A token of a
 * client that is limited to one organization finds no other.
 */
import { asciiLowerCase } from '#base/ascii'
import { type GuardedRequest, type MaybePromise, type RouteGuard, ServiceError } from '#feature/declaration'
import { ERRORS, type OrganizationsDeps, rolesOf } from './definitions.ts'
import { type Organization, OWNER } from './organization.ts'

/** The organization of a request, with the roles of the user there. */
export interface RequestOrganization extends Pick<Organization, 'id' | 'slug' | 'name'> {
  readonly roles: readonly string[]
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The user must be a member of the organization in the URL's `:organizationId`, else 404, with any of these roles, else 403. Owners always
     * may. `true`: any member. Private routes only.
     */
    organization?: true | readonly [string, ...string[]]
    /** The route concerns all organizations of the user: tokens that are limited to one get 403. Private routes only. */
    everyOrganization?: true
  }
  interface FastifyRequest {
    /** On routes that declare `config.organization`. @throws {Error} on other routes. */
    readonly organization: RequestOrganization
  }
}

/** The most users, and organizations, that a process caches. */
const CACHED = 32_768

type Memberships = ReadonlyMap<string, readonly string[]>

const NONE: Memberships = new Map()

/** One path for a malformed, an unknown and a foreign id, which the memberships do not have. */
const notFound = (): ServiceError => new ServiceError(ERRORS.organizationNotFound)

const organizationIdOf = ({ params }: GuardedRequest): string => {
  const { organizationId } = (params ?? {}) as { readonly organizationId?: unknown }
  return asciiLowerCase(String(organizationId))
}

const isAllowed = (roles: readonly string[], declared: true | readonly string[]): boolean =>
  declared === true || roles.includes(OWNER) || declared.some(role => roles.includes(role))

/** Continues at once with a value that is there, because a promise costs more than the gate. */
const use = <Value, Result>(
  value: MaybePromise<Value>,
  then: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> => (value instanceof Promise ? value.then(then) : then(value))

export const organizationGate = ({
  store,
  openCache,
  settings,
}: Pick<OrganizationsDeps, 'store' | 'openCache' | 'settings'>): RouteGuard => {
  const known = rolesOf(settings)
  const memberships = openCache<Memberships>({
    load: userId =>
      use(store.listMemberships(userId), found =>
        found.length === 0
          ? NONE
          : new Map(found.map(({ organizationId, roles }) => [organizationId, roles])),
      ),
    max: CACHED,
  })
  const organizations = openCache<Organization | undefined>({
    load: id => store.findOrganization(id),
    max: CACHED,
  })
  return {
    problemOf(declared, url) {
      if (url !== '' && !url.split('/').includes(':organizationId'))
        return 'declares organization, but its URL has no :organizationId'
      if (declared === true) return null
      if (!Array.isArray(declared) || declared.length === 0)
        return 'declares an organization that is neither true nor a list of roles'
      const unknown = declared.find(role => !known.includes(role))
      return unknown === undefined
        ? null
        : `declares the role ${JSON.stringify(unknown)} of an organization, which is none of ${known.join(', ')}: ORGANIZATION_ROLES adds roles`
    },

    admit: (request, declared) =>
      use(memberships.get(request.user.id), held => {
        const id = organizationIdOf(request)
        const { tokenOrganization } = request
        if (tokenOrganization !== null && tokenOrganization !== id) throw notFound()
        const roles = held.get(id)
        if (roles === undefined) throw notFound()
        return use(organizations.get(id), (found): RequestOrganization => {
          // Deleted, while its members are removed.
          if (found === undefined) throw notFound()
          if (!isAllowed(roles, declared as true | readonly string[]))
            throw new ServiceError(ERRORS.organizationRoleRequired)
          return { id, slug: found.slug, name: found.name, roles }
        })
      }),
  }
}

export const everyOrganizationGate: RouteGuard = {
  problemOf: declared =>
    declared === true ? null : `declares everyOrganization: ${JSON.stringify(declared)}, which is not true`,
  admit({ tokenOrganization }) {
    if (tokenOrganization !== null) throw new ServiceError(ERRORS.tokenOfOrganization)
    return true
  },
}
