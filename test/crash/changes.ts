/** The changes of accounts, each with the state to which it leads. */

import type { Random } from '../support/random.ts'
import { type Account, type AccountState, openedSessions } from './account.ts'
import type { Client, ServiceResponse } from './client.ts'

/** A thousandth of the changes each; the rest renames. Those that verify or hash a password are rare: they need the CPU. */
const SHARES = {
  'API key': 60,
  'revoked API key': 30,
  'sign-out': 40,
  roles: 50,
  password: 25,
  removal: 15,
  disabling: 5,
} as const

export type ChangeKind = keyof typeof SHARES | 'rename'

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
  /** A name that no other change has. */
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

const MAKERS: Readonly<Record<keyof typeof SHARES, (site: Site) => Change | null>> = {
  'API key': createApiKey,
  'revoked API key': revokeApiKey,
  'sign-out': signOut,
  roles: setRoles,
  password: changePassword,
  removal: remove,
  disabling: disable,
}

const pickKind = (random: Random): ChangeKind => {
  let rest = random.integer(0, 999)
  for (const [kind, share] of Object.entries(SHARES)) {
    if (rest < share) return kind as ChangeKind
    rest -= share
  }
  return 'rename'
}

/** Whether a client can still change the account: a disabled or removed one has no session. */
export const isChangeable = ({ id, state }: Account): boolean =>
  id !== null && state.acknowledged.sessions.length > 0

/** @param account is changeable. @returns a change by chance. What cannot be changed, like an API key that is not there, is renamed. */
export const pickChange = (client: Client, random: Random, account: Account, unique: string): Change => {
  const state = account.state.acknowledged
  const [session] = state.sessions
  if (account.id === null || session === undefined) throw new Error(`${account.email} cannot be changed`)
  const site: Site = { client, random, id: account.id, state, ...session, unique }
  const kind = pickKind(random)
  return (kind === 'rename' ? null : MAKERS[kind](site)) ?? rename(site)
}
