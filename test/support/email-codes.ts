/** Signing in with mailed codes and links over HTTP (docs/design.md, "E-mail codes" and "Magic links"). */
import type { FastifyInstance } from 'fastify'
import { call } from './account-routes.ts'
import { mailbox } from './mailbox.ts'

/** The settings of a service with mailed codes, on either engine. */
export const EMAIL_CODES = {
  EMAIL_CODES: 'on',
  ENCRYPTION_KEY: 'test-encryption-key-0123456789abcdef',
}

/** With mailed links too. */
export const MAILED_SIGN_INS = { ...EMAIL_CODES, MAGIC_LINKS: 'on' }

export const requestCode = (app: FastifyInstance, email: unknown) =>
  call(app, 'POST', '/account/email-code', { email })

/** @param code of the second factor. */
export const signInByCode = (app: FastifyInstance, email: unknown, emailCode: unknown, code?: string) =>
  call(app, 'POST', '/account/sign-in/email-code', { email, emailCode, ...(code !== undefined && { code }) })

/** Another code than this one. */
export const otherThan = (code: string, distance = 1): string =>
  String((Number(code) + distance) % 10 ** 8).padStart(8, '0')

/** Requests codes, and reads them from the mails. */
export const codesOf = (app: FastifyInstance) => {
  const mails = mailbox(app)
  /** The code in the newest of so many mails. */
  const newest = async (email: string, count = 1): Promise<string> => {
    const mail = (await mails.to(email, 'emailCode', count)).at(-1)
    const [, code] = /^ {4}(\d{8})$/m.exec(mail?.text ?? '') ?? []
    if (code === undefined) throw new Error(`no code in ${mail?.text}`)
    return code
  }
  return {
    mails,
    newest,
    /** @param count the number of the mail, if it is not the first one to this address. */
    async request(email: string, count = 1): Promise<string> {
      const { statusCode, body } = await requestCode(app, email)
      if (statusCode !== 202) throw new Error(`${statusCode}: ${body}`)
      return newest(email, count)
    },
  }
}

export const requestLink = (app: FastifyInstance, email: unknown, headers: Record<string, string> = {}) =>
  call(app, 'POST', '/account/magic-link', { email }, headers)

export const checkLink = (app: FastifyInstance, token: unknown) =>
  call(app, 'POST', '/account/magic-link/check', { token })

/** @param code of the second factor. */
export const signInByLink = (app: FastifyInstance, token: unknown, code?: string) =>
  call(app, 'POST', '/account/sign-in/magic-link', { token, ...(code !== undefined && { code }) })

/** Requests links, and reads their tokens from the mails. */
export const linksOf = (app: FastifyInstance) => {
  const mails = mailbox(app)
  return {
    mails,
    /** @param count the number of the mail, if it is not the first one to this address. */
    async request(email: string, count = 1): Promise<string> {
      const { statusCode, body } = await requestLink(app, email)
      if (statusCode !== 202) throw new Error(`${statusCode}: ${body}`)
      return mails.token(email, 'magicLink', count)
    },
  }
}
