/** Every scope of the core: what an API key or an admin key may do. Features declare their own. */

/** The scopes of API keys. A private route declares the one that it needs with `config.scope`; without one it accepts sessions only. */
export const USER_SCOPES = {
  'account:read': 'Read your account',
  'account:write': 'Change your names and your metadata',
  'users:read': 'List other users',
} as const satisfies ScopeDescriptions

/** The scopes of admin keys. Every admin route declares one. */
export const ADMIN_SCOPES = {
  'users:read': 'List and read users',
  'users:write':
    'Create users, change their names and metadata, disable them, end their sessions, revoke their API keys, mail them links',
  'users:identity': 'Change and confirm e-mails of users, change roles, set passwords, remove factors',
  'users:delete': 'Delete users',
  'users:impersonate': 'Act as a user',
  'users:import': 'Import users, with hashes and roles',
  'users:export': 'Export all users; with password hashes, second factors and passkeys if asked',
  'events:read': 'Read the audit log',
  'keys:write': 'List, create and revoke admin keys',
  'tokens:introspect': 'Ask whether access tokens are active, and which users and keys have changed',
  'metrics:read': 'Read metrics',
  'status:read': 'Read the status of the service',
  'mails:test': 'Send mails with examples, to try out how mails arrive',
  'settings:read': 'Read the settings, without secrets',
} as const satisfies ScopeDescriptions

export type ScopeDescriptions = Readonly<Record<string, string>>

/** Each scope once, in the order of the declarations. */
export const sortedScopes = (declared: ScopeDescriptions, scopes: readonly string[]): readonly string[] =>
  Object.keys(declared).filter(scope => scopes.includes(scope))
