/** Authenticator apps of users. The package otpauth computes their codes, independently of the service. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { Secret, TOTP } from 'otpauth'
import { call } from './account-routes.ts'
import { bearer, PASSWORD } from './build.ts'

/** On SQLite a missing key is created, on PostgreSQL it is not. */
export const ENCRYPTION_KEY = 'test-encryption-key-0123456789abcdef0123456789abcdef'

/** Milliseconds. */
export const STEP = 30_000

/** What an app shows for a secret (base32) at a time (milliseconds since the epoch). */
export const codeAt = (secret: string, time: number): string =>
  new TOTP({ secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: 30 }).generate({
    timestamp: time,
  })

export interface App {
  readonly secret: string
  /** The code at the time of the service, or so many steps later. */
  code(steps?: number): string
}

const appOf = ({ services }: FastifyInstance, secret: string): App => ({
  secret,
  code: (steps = 0) => codeAt(secret, services.clock() + steps * STEP),
})

const bodyOf = (response: LightMyRequestResponse, status: number) => {
  if (response.statusCode !== status) throw new Error(`${response.statusCode}: ${response.body}`)
  return response.json()
}

/** Gets a secret, which is not confirmed. */
export const beginTotp = async (app: FastifyInstance, token: string): Promise<App> => {
  const { secret } = bodyOf(await call(app, 'POST', '/account/totp', {}, bearer(token)), 201)
  return appOf(app, secret)
}

export const confirmTotp = (app: FastifyInstance, token: string, code: string, query = '') =>
  call(app, 'POST', `/account/totp/confirm${query}`, { code }, bearer(token))

export const totpOf = async (app: FastifyInstance, token: string) =>
  bodyOf(await call(app, 'GET', '/account/totp', undefined, bearer(token)), 200)

export interface AddedApp extends App {
  readonly recoveryCodes: readonly string[]
}

/** Adds an authenticator app. The code of the current step is then used up. */
export const addTotp = async (app: FastifyInstance, token: string): Promise<AddedApp> => {
  const added = await beginTotp(app, token)
  const { recoveryCodes } = bodyOf(await confirmTotp(app, token, added.code()), 200)
  return { ...added, recoveryCodes }
}

/** @param code `undefined`: none is sent. */
export const signInWith = (app: FastifyInstance, email: string, code?: string, password = PASSWORD) =>
  call(app, 'POST', '/account/sign-in', { email, password, ...(code !== undefined && { code }) })
