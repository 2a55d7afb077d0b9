/** The account routes over HTTP (docs/design.md, "Account life cycle"). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { bearer, PASSWORD } from './build.ts'

type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'

export const call = (
  app: FastifyInstance,
  method: Method,
  url: string,
  payload?: object,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> =>
  app.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) })

/** Confirms with the password of the account, without a session. */
export const verify = (app: FastifyInstance, token: unknown, password: unknown = PASSWORD) =>
  call(app, 'POST', '/account/verify-email', { token, password })

export const resend = (app: FastifyInstance, accessToken: string) =>
  call(app, 'POST', '/account/verify-email/resend', undefined, bearer(accessToken))

export const forgot = (app: FastifyInstance, email: unknown) =>
  call(app, 'POST', '/account/forgot-password', { email })

export const reset = (app: FastifyInstance, token: unknown, password: unknown) =>
  call(app, 'POST', '/account/reset-password', { token, password })

export const changeEmail = (app: FastifyInstance, accessToken: string, payload: object) =>
  call(app, 'PUT', '/account/email', payload, bearer(accessToken))

export const remove = (app: FastifyInstance, accessToken: string, payload: object) =>
  call(app, 'DELETE', '/account', payload, bearer(accessToken))

export const accountOf = async (app: FastifyInstance, accessToken: string) =>
  (await call(app, 'GET', '/account', undefined, bearer(accessToken))).json()

/** Values that are no e-mail token. */
export const NO_TOKENS: readonly unknown[] = [
  '',
  ' ',
  'x',
  'x'.repeat(43),
  'x'.repeat(10_000),
  'ẞ\u0000\ud800',
  "' OR 1=1 --",
  '../..',
  null,
  7,
  true,
  {},
  [],
  undefined,
]
