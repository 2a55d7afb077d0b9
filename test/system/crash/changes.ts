/** The changes of accounts, each with the state to which it leads. */

import type { Random } from '../../support/random.ts'
import { type Account, type AccountState, openedSessions } from './account.ts'
import type { Client, ServiceResponse } from './client.ts'

/** In thousandths of the changes that need no hash. The rest renames, and so does a revocation where there is no API key. */
const SHARES = { 'API key': 60, 'revoked API key': 150, 'sign-out': 50, roles: 50, disabling: 5 } as const

/** One of so many changes that verify the password removes the account. The rest changes the password. */
const REMOVE_ONE_IN = 3

export type ChangeKind = keyof typeof SHARES | 'rename' | 'password' | 'removal'

export interface Change {
  readonly kind: ChangeKind
  /** The expected status. */
  readonly status: number
  /** The state if the change is stored, without the secrets of the response. */
  readonly next: AccountState
  send(): Promise<ServiceResponse>
  /** @returns {@link next} with the secrets of the response. By default there are none. */
  receive?(body: Record<string, unknown>): AccountState
}

/** What a change is made of. */
interface Site {
  readonly client: Client
  readonly random: Random
  readonly id: string
  readonly state: AccountState
  /** Of a session. */
  readonly token: string
  /** Milliseconds since the epoch. */
  readonly openedAt: number
  readonly unique: string
}

/** Milliseconds for which a session creates API keys without the password: less than the server's ten minutes. */
const RECENT = 540_000

const ROLES = ['auditor', 'editor', 'owner', 'support']

const rename = ({ client, state, token, unique }: Site): Change => ({
  kind: 'rename',
  status: 200,
  next: { ...state, firstName: unique },
  send: () => client.rename(token, unique),
})

const createApiKey = ({ client, state, token, openedAt, unique: name }: Site): Change => {
  const password = Date.now() - openedAt < RECENT ? undefined : state.password
  return {
    kind: 'API key',
    status: 201,
    next: { ...state, apiKeys: [...state.apiKeys, { name, created: null }] },
    send: () => client.createApiKey(token, name, password),
    receive(body) {
      const created = { id: (body.apiKey as { id: string }).id, token: body.token as string }
      return { ...state, apiKeys: [...state.apiKeys, { name, created }] }
    },
  }
}

const revokeApiKey = ({ client, random, state, token }: Site): Change | null => {
  const revoked = random.pick(state.apiKeys.filter(({ created }) => created !== null))
  if (revoked?.created == null) return null
  const { id } = revoked.created
  return {
    kind: 'revoked API key',
    status: 204,
    next: { ...state, apiKeys: state.apiKeys.filter(apiKey => apiKey !== revoked) },
    send: () => client.revokeApiKey(token, id),
  }
}

/** Keeps at least one session. */
const signOut = ({ client, random, state }: Site): Change | null => {
  const ended = random.pick(state.sessions)
  if (ended === undefined || state.sessions.length === 1) return null
  return {
    kind: 'sign-out',
    status: 204,
    next: { ...state, sessions: state.sessions.filter(session => session !== ended) },
    send: () => client.signOut(ended.token),
  }
}

const setRoles = ({ client, random, id, state }: Site): Change => {
  const roles = ROLES.filter(() => random.next() < 0.5)
  return {
    kind: 'roles',
    status: 200,
    next: { ...state, roles },
    send: () => client.setRoles(id, roles),
  }
}

const changePassword = ({ client, state, token, unique }: Site): Change => {
  const password = `another pass phrase of ${unique}`
  const next = { ...state, password, sessions: [] }
  return {
    kind: 'password',
    status: 200,
    next,
    send: () => client.changePassword(token, state.password, password),
    receive: body => ({ ...next, sessions: openedSessions(body) }),
  }
}

const remove = ({ client, state, token }: Site): Change => ({
  kind: 'removal',
  status: 204,
  next: { ...state, sessions: [], apiKeys: [], removed: true },
  send: () => client.remove(token, state.password),
})

const disable = ({ client, id, state }: Site): Change => ({
  kind: 'disabling',
  status: 200,
  next: { ...state, sessions: [], disabled: true },
  send: () => client.disable(id),
})

const MAKERS: Readonly<Record<ChangeKind, (site: Site) => Change | null>> = {
  'API key': createApiKey,
  'revoked API key': revokeApiKey,
  'sign-out': signOut,
  roles: setRoles,
  disabling: disable,
  rename,
  password: changePassword,
  removal: remove,
}

export const pickKind = (random: Random): ChangeKind => {
  let rest = random.integer(0, 999)
  for (const [kind, share] of Object.entries(SHARES)) {
    if (rest < share) return kind as ChangeKind
    rest -= share
  }
  return 'rename'
}

/** @returns a kind of change that verifies the password. */
export const pickHashingKind = (random: Random): ChangeKind =>
  random.integer(1, REMOVE_ONE_IN) === 1 ? 'removal' : 'password'

/** Whether a client can still change the account: a disabled or removed one has no session. */
export const isChangeable = ({ id, state }: Account): boolean =>
  id !== null && state.acknowledged.sessions.length > 0

/**
 * @param account is changeable.
 * @param unique a name that no other change has.
 * @returns a rename instead of what the account does not allow, such as the revocation of an API key when it has none.
 */
export const makeChange = (
  kind: ChangeKind,
  account: Account,
  client: Client,
  random: Random,
  unique: string,
): Change => {
  const state = account.state.acknowledged
  const [session] = state.sessions
  if (account.id === null || session === undefined) throw new Error(`${account.email} cannot be changed`)
  const site: Site = { client, random, id: account.id, state, ...session, unique }
  return MAKERS[kind](site) ?? rename(site)
}
