/** Slugs: short names of organizations for URLs. ASCII only, so that no two look alike. */
import { randomInt } from 'node:crypto'
import { ID } from '#base/ids'

export const SLUG_MIN_LENGTH = 3
export const SLUG_MAX_LENGTH = 63

const SLUG = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/** Paths and names that belong to the service, or that people trust. */
const RESERVED: ReadonlySet<string> = new Set([
  ...['account', 'accounts', 'admin', 'administrator', 'api', 'app', 'assets', 'auth', 'billing', 'blog'],
  ...['console', 'dashboard', 'docs', 'email', 'gatehouse', 'health', 'help', 'invitations', 'login', 'mail'],
  ...['members', 'new', 'null', 'oauth', 'official', 'openapi', 'organization', 'organizations', 'owner'],
  ...['postmaster', 'public', 'ready', 'root', 'security', 'settings', 'sign-in', 'sign-out', 'sign-up'],
  ...['static', 'status', 'support', 'system', 'undefined', 'user', 'users', 'webhooks', 'well-known', 'www'],
])

/** The rules of slugs, as messages. */
export const slugViolations = (slug: string): readonly string[] => {
  if (slug.length < SLUG_MIN_LENGTH || slug.length > SLUG_MAX_LENGTH)
    return [`must have ${SLUG_MIN_LENGTH} to ${SLUG_MAX_LENGTH} characters`]
  if (!SLUG.test(slug)) return ['must be a to z and 0 to 9, with single hyphens between them']
  // An organization that is deleted has its id as slug, so that its own is free.
  return RESERVED.has(slug) || ID.test(slug) ? ['is reserved: choose another'] : []
}

const SUFFIX = 'abcdefghijkmnpqrstuvwxyz23456789'

const suffix = (length: number): string =>
  Array.from({ length }, () => SUFFIX.charAt(randomInt(SUFFIX.length))).join('')

const withoutHyphensAround = (text: string): string => text.replaceAll(/^-+|-+$/g, '')

/**
 * A slug from a name, without accents; random where the name has no letters of ASCII, or its own is reserved.
 * @param isTaken whether the slug of the name alone is taken: then it gets a random end.
 */
export const slugFrom = (name: string, isTaken: boolean): string => {
  const words = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
  const text = withoutHyphensAround(withoutHyphensAround(words).slice(0, SLUG_MAX_LENGTH - 7))
  if (!isTaken && slugViolations(text).length === 0) return text
  return text === '' ? `team-${suffix(8)}` : `${text}-${suffix(6)}`
}
