/** What a client knows about one account: its acknowledged state, and the one after a request without a response. */

/** A value that a request may have changed before the crash. It is stored either as it was acknowledged or as it is pending. */
export interface Known<T> {
  acknowledged: T
  /** Sent without a response yet; `undefined` when no request is in flight. */
  pending: T | undefined
}

export interface Session {
  readonly token: string
  /** Milliseconds since the epoch. */
  readonly openedAt: number
}

export interface ApiKey {
  readonly name: string
  /** `null` when the process died before the response was read. */
  readonly created: { readonly id: string; readonly token: string } | null
}

/** What one request changes, it changes entirely or not at all: it leads from one state to another. */
export interface AccountState {
  readonly firstName: string
  /** Sorted. */
  readonly roles: readonly string[]
  readonly password: string
  /** Those whose token was received. */
  readonly sessions: readonly Session[]
  /** Disabling ends all sessions, but no API key: while the account is disabled, its keys are refused. */
  readonly apiKeys: readonly ApiKey[]
  readonly disabled: boolean
  readonly removed: boolean
}

export interface Account {
  readonly email: string
  /** `null` when the process died before the response to sign-up was read. */
  id: string | null
  /** One request at a time changes an account. */
  readonly state: Known<AccountState>
  /** Every password, and every token of a session or an API key, that was ever acknowledged: only those in the state are accepted. */
  readonly passwords: Set<string>
  readonly tokens: Set<string>
}

/** Records the state that a response has acknowledged, or that the restarted server has shown. It must stay. */
export const settle = (account: Account, state: AccountState): void => {
  account.state.acknowledged = state
  account.state.pending = undefined
  account.passwords.add(state.password)
  for (const { token } of state.sessions) account.tokens.add(token)
  for (const { created } of state.apiKeys) if (created !== null) account.tokens.add(created.token)
}

/** @returns the states that the server may have stored. */
export const possibleStates = ({ state: { acknowledged, pending } }: Account): readonly AccountState[] =>
  pending === undefined ? [acknowledged] : [acknowledged, pending]

/** The session that a response opens; none when the process died before the body was read. */
export const openedSessions = (body: Record<string, unknown> | null): readonly Session[] =>
  body === null ? [] : [{ token: body.accessToken as string, openedAt: Date.now() }]

/** @param body of the response to sign-up. */
export const newAccount = (
  email: string,
  password: string,
  firstName: string,
  body: Record<string, unknown> | null,
): Account => {
  const state: AccountState = {
    firstName,
    roles: [],
    password,
    sessions: openedSessions(body),
    apiKeys: [],
    disabled: false,
    removed: false,
  }
  const account: Account = {
    email,
    id: (body?.user as { id: string } | undefined)?.id ?? null,
    state: { acknowledged: state, pending: undefined },
    passwords: new Set(),
    tokens: new Set(),
  }
  settle(account, state)
  return account
}
