/**
 * Back-channel logout (OpenID Connect Back-Channel Logout 1.0): clients learn that a session has ended of which they have an ID token. What
 * must be sent is in the store until the client has accepted it, so each learns of it at least once.
 */
import { type HttpClient, HttpRequestError } from '#base/http-client/http-client'
import { newId } from '#feature/declaration'
import type { StoredClient } from './client.ts'
import type { OAuthDeps } from './definitions.ts'
import { IdTokenKeys } from './id-token-keys.ts'
import type { EndedSignIn } from './stored-sign-ins.ts'

/** The events that can end sessions. The store says which ones have ended. */
export const ENDING_EVENTS = [
  ...['session.ended', 'sessions.ended', 'password.changed', 'password.reset', 'email.verified'],
  ...['user.disabled', 'user.deleted'],
]

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

const MINUTE = 60_000

/** Milliseconds from a failed attempt to the next. After the last one the client does not learn of it. */
const RETRIES = [MINUTE, 5 * MINUTE, 30 * MINUTE, 120 * MINUTE, 300 * MINUTE, 600 * MINUTE]

/** Milliseconds of an attempt. */
const TIME_LIMIT = 5_000

/** Milliseconds for which a token is valid (§2.4). */
const TOKEN_LIFETIME = 2 * MINUTE

/** Attempts at once, and those of one read. */
const PAGE = 20

const MAX_BYTES = 4_096

export class BackChannelLogout {
  readonly #deps: OAuthDeps
  readonly #http: HttpClient
  readonly #keys: IdTokenKeys

  /** @param keyPairs of access tokens. */
  constructor(deps: OAuthDeps, keyPairs: ConstructorParameters<typeof IdTokenKeys>[1]) {
    this.#deps = deps
    this.#http = deps.openHttpClient({
      allowedHosts: deps.settings.OAUTH_ALLOWED_HOSTS,
      maxConnections: PAGE,
    })
    this.#keys = new IdTokenKeys(deps, keyPairs)
  }

  /** Tells clients of the sessions of a user that have ended. The attempts go on afterwards. */
  async end(userId: string): Promise<void> {
    const { store, clock, deferred } = this.#deps
    const ended = await store.takeEndedSignIns(userId, clock() + MINUTE)
    // An attempt that a stop or a crash interrupts is repeated by the job.
    if (ended.length > 0) deferred.run(() => this.#sendAll(ended))
  }

  /** Repeats attempts that have failed. */
  async repeat(signal: AbortSignal): Promise<void> {
    const { store, clock } = this.#deps
    for (;;) {
      signal.throwIfAborted()
      const due = await store.listDueSignIns(clock(), PAGE)
      await this.#sendAll(due)
      if (due.length < PAGE) return
    }
  }

  async #sendAll(signIns: readonly EndedSignIn[]): Promise<void> {
    for (let start = 0; start < signIns.length; start += PAGE)
      await Promise.all(signIns.slice(start, start + PAGE).map(each => this.#send(each)))
  }

  async #send(signIn: EndedSignIn): Promise<void> {
    const { store, clock, logger } = this.#deps
    const client = await store.findClient(signIn.clientId)
    const uri = client?.backchannelLogoutUri ?? null
    if (client === undefined || uri === null || (await this.#isAccepted(signIn, client, uri)))
      return store.removeSignIn(signIn.id)
    const delay = RETRIES[signIn.attempts]
    const failure = { client: client.id, attempt: signIn.attempts + 1 }
    if (delay !== undefined) {
      logger.info(failure, 'a client was not told that a session has ended, it is told again')
      return store.retrySignIn(signIn.id, clock() + delay)
    }
    logger.warn(failure, 'a client could not be told that a session has ended')
    return store.removeSignIn(signIn.id)
  }

  async #isAccepted({ sessionId, userId }: EndedSignIn, client: StoredClient, uri: string): Promise<boolean> {
    const { clock, config } = this.#deps
    const now = clock()
    const token = await this.#keys.sign(
      client.idTokenAlgorithm,
      {
        ...{ iss: config.publicUrl, aud: client.id, sub: userId, sid: sessionId, jti: newId(now) },
        ...{ iat: Math.floor(now / 1_000), exp: Math.floor((now + TOKEN_LIFETIME) / 1_000) },
        events: { [EVENT]: {} },
      },
      'logout+jwt',
    )
    const body = new URLSearchParams({ logout_token: token }).toString()
    try {
      const { status } = await this.#http.request(new URL(uri), {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'content-length': Buffer.byteLength(body),
          'user-agent': 'Gatehouse-OAuth',
        },
        ...{ body, timeLimit: TIME_LIMIT, maxBytes: MAX_BYTES, cutsBody: true },
      })
      return status >= 200 && status < 300
    } catch (error) {
      if (error instanceof HttpRequestError) return false
      throw error
    }
  }
}

/** One for the services that are created with `deps`: it has connections. */
const opened = new WeakMap<OAuthDeps, BackChannelLogout>()

/** @returns `null` with `OAUTH=off`. */
export const backChannelOf = (deps: OAuthDeps): BackChannelLogout | null => {
  const tokens = deps.settings.OAUTH === 'on' ? deps.clientTokens() : null
  if (tokens === null) return null
  const found = opened.get(deps) ?? new BackChannelLogout(deps, tokens.keyPairs)
  opened.set(deps, found)
  return found
}
