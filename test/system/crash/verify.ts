/** Checks after a crash, by the service's responses. */
import {
  type Account,
  type AccountState,
  newAccount,
  openedSessions,
  possibleStates,
  settle,
} from './account.ts'
import type { Client } from './client.ts'

/** Concurrent calls of the checks. */
const CONCURRENCY = 16

const forEach = async <T>(items: readonly T[], check: (item: T) => Promise<void>): Promise<void> => {
  const rest = items.values()
  // The workers share one iterator, so that each item is checked once.
  const worker = async (): Promise<void> => {
    for (const item of rest) await check(item)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
}

/** What the service says about an account, each fact with its name. */
type Facts = Readonly<Record<string, unknown>>

interface Credentials {
  readonly tokens: readonly string[]
  readonly passwords: readonly string[]
}

const tokenFact = (token: string): string => `the token that ends in ${token.slice(-8)}`
const passwordFact = (password: string): string => `sign-in with "${password}"`

const signInStatus = ({ password, disabled, removed }: AccountState, presented: string): number => {
  if (removed || presented !== password) return 401
  return disabled ? 403 : 200
}

const acceptedTokens = ({ sessions, apiKeys, disabled }: AccountState): ReadonlySet<string | undefined> =>
  new Set(
    disabled ? [] : [...sessions.map(({ token }) => token), ...apiKeys.map(({ created }) => created?.token)],
  )

/** @param credentials that are tried. @returns what the service says if it has stored this state. */
const factsOf = (state: AccountState, { tokens, passwords }: Credentials): Facts => {
  const accepted = acceptedTokens(state)
  const signIns = passwords.map(password => signInStatus(state, password))
  // Only a session reads the account.
  const isReadable = state.sessions.length > 0 || signIns.includes(200)
  return {
    ...Object.fromEntries(tokens.map(token => [tokenFact(token), accepted.has(token) ? 200 : 401])),
    ...Object.fromEntries(passwords.map((password, index) => [passwordFact(password), signIns[index]])),
    ...(isReadable && {
      'first name': state.firstName,
      roles: state.roles.join(),
      'API keys': state.apiKeys
        .map(({ name }) => name)
        .sort()
        .join(),
    }),
  }
}

const readFacts = async (client: Client, token: string): Promise<Facts> => {
  const { body: account } = await client.account(token)
  const { body: apiKeys } = await client.apiKeys(token)
  return {
    'first name': account?.firstName,
    roles: (account?.roles as readonly string[] | undefined)?.join(),
    'API keys': (apiKeys?.results as readonly { name: string }[] | undefined)
      ?.map(({ name }) => name)
      .sort()
      .join(),
  }
}

interface Observation {
  readonly facts: Facts
  /** The body of the accepted sign-in, if any. */
  readonly signedIn: Record<string, unknown> | null
}

const observe = async (
  client: Client,
  account: Account,
  { tokens, passwords }: Credentials,
): Promise<Observation> => {
  const facts: Record<string, unknown> = {}
  const ofSessions = new Set(
    possibleStates(account).flatMap(({ sessions }) => sessions.map(({ token }) => token)),
  )
  let reader: string | undefined
  for (const token of tokens) {
    const { status } = await client.account(token)
    facts[tokenFact(token)] = status
    if (status === 200 && ofSessions.has(token)) reader = token
  }
  let signedIn: Observation['signedIn'] = null
  for (const password of passwords) {
    const { status, body } = await client.signIn(account.email, password)
    facts[passwordFact(password)] = status
    if (status === 200) signedIn = body
  }
  reader ??= signedIn?.accessToken as string | undefined
  return {
    facts: reader === undefined ? facts : { ...facts, ...(await readFacts(client, reader)) },
    signedIn,
  }
}

/** @returns the names of the facts that differ, with both values. */
const differences = (expected: Facts, actual: Facts): string[] =>
  Object.keys({ ...expected, ...actual })
    .filter(name => expected[name] !== actual[name])
    .map(name => `${name}: ${actual[name]} instead of ${expected[name]}`)

/**
 * Compares accounts with what the service says: one of the possible states, in every fact. Tries all tokens that were issued before
 * the crash. Settles the state that it finds.
 * @param signingIn accounts that sign in too, with every password that they have had.
 * @returns what was lost.
 */
export const verifyAccounts = async (
  client: Client,
  accounts: readonly Account[],
  signingIn: ReadonlySet<Account>,
): Promise<string[]> => {
  const lost: string[] = []
  await forEach(accounts, async account => {
    const states = possibleStates(account)
    const passwords = signingIn.has(account)
      ? [...new Set([...account.passwords, ...states.map(({ password }) => password)])]
      : []
    const credentials = { tokens: [...account.tokens], passwords }
    const { facts, signedIn } = await observe(client, account, credentials)
    const found = states.find(state => differences(factsOf(state, credentials), facts).length === 0)
    if (found === undefined) {
      const differing = differences(factsOf(account.state.acknowledged, credentials), facts)
      const pending = account.state.pending === undefined ? '' : ' (a change was in flight)'
      lost.push(`${account.email}${pending}: ${differing.join('; ')}`)
      return
    }
    settle(account, { ...found, sessions: [...found.sessions, ...openedSessions(signedIn)] })
    account.id ??= (signedIn?.user as { id: string } | undefined)?.id ?? null
  })
  return lost
}

/**
 * Signs up with the e-mails of removed accounts, which are free.
 * @param round whose passwords no earlier account with the same e-mail has had.
 * @returns the new accounts, and what failed.
 */
export const signUpAgain = async (
  client: Client,
  removed: readonly Account[],
  round: number,
): Promise<{ created: Account[]; failed: string[] }> => {
  const created: Account[] = []
  const failed: string[] = []
  await forEach(removed, async ({ email }) => {
    const [password, firstName] = [`a pass phrase of round ${round} for ${email}`, `${round}-again`]
    const { status, body } = await client.signUp(email, password, firstName)
    if (status === 201) created.push(newAccount(email, password, firstName, body))
    else failed.push(`${email}: sign-up after the removal returned ${status}`)
  })
  return { created, failed }
}
