/** `sessions`: lists and revokes sessions. */
import type { Command } from 'commander'
import { canonicalId } from '#base/ids'
import { serializeSession } from '#core/accounts/serializers'
import { OPERATOR } from '#core/audit-log/event'
import type { Session } from '#core/auth/session'
import { nonEmpty, option, type StoreOptions, storeCommand } from '#feature/commands/options'
import { print, table } from '#feature/commands/output'
import { withStore } from './store.ts'

interface RevokeOptions extends StoreOptions {
  readonly session?: string
}

const COLUMNS = ['id', 'opened', 'last request', 'ends', 'by', 'address', 'user agent']

const row = (session: Session): string[] => {
  const { id, createdAt, lastRequestAt, expiresAt, impersonated, ip, userAgent } = serializeSession(
    session,
    null,
  )
  const by = impersonated ? 'adminKey' : 'user'
  return [id, createdAt, lastRequestAt, expiresAt, by, ip ?? '-', userAgent ?? '-']
}

const list = (idOrEmail: string, options: StoreOptions): Promise<void> =>
  withStore(options, async ({ users, sessions }) => {
    const found = await sessions.list((await users.find(idOrEmail)).id)
    const results = found.map(session => serializeSession(session, null))
    print(options.json, { results }, table([COLUMNS, ...found.map(row)]))
  })

const revoke = (idOrEmail: string, { session, ...options }: RevokeOptions): Promise<void> =>
  withStore(options, async ({ users, sessions }) => {
    const { id, email } = await users.find(idOrEmail)
    if (session === undefined) await sessions.revokeAll(id, OPERATOR)
    else await sessions.revoke(id, canonicalId(session), OPERATOR)
    const what = session === undefined ? 'All sessions' : 'The session'
    if (!options.json) print(false, null, [`${what} of ${email} ended`])
  })

export const sessionsCommands = (program: Command): void => {
  const sessions = program.command('sessions').description('Sessions of users')
  storeCommand(
    sessions,
    'list <user>',
    "List a user's sessions, newest first, at most 1,000; <user> is an id or an e-mail",
  ).action(list)
  storeCommand(
    sessions,
    'revoke <user>',
    "End a user's sessions, so that their tokens are rejected; <user> is an id or an e-mail",
  )
    .addOption(option('--session <id>', 'only this session', nonEmpty))
    .action(revoke)
}
