/**
 * The first parts of the URLs of the service's own routes, without `/admin`. Their schemas are compiled with the first request that needs
 * them, because tests compile all of them. Schemas of other routes, which a team adds, are compiled at the start.
 */
const OWN = new Set([
  '',
  '.well-known',
  'account',
  'docs',
  'events',
  'forgot-password',
  'health',
  'introspect',
  'keys',
  'metrics',
  'openapi.json',
  'pages',
  'ready',
  'reset-password',
  'security',
  'sign-in',
  'sign-out',
  'status',
  'users',
  'warm-up',
])

/** @param url without the prefix of the service. */
export const isOwnRoute = (url: string): boolean => OWN.has(/^\/(?:admin\/)?([^/]*)/.exec(url)?.[1] ?? '')
