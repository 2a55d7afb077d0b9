/** The rows of e-mail tokens, for both engines. Statements list columns in the order given here. */
import type { EmailTokensTable } from '../store/tables.ts'
import type { EmailToken } from './email-token.ts'

/** An e-mail token without its user, which is a key in the table and an id elsewhere. */
export type EmailTokenRow = Omit<EmailTokensTable, 'user_key'>

export const EMAIL_TOKEN_COLUMNS = [
  'digest',
  'purpose',
  'email',
  'created_at',
  'expires_at',
] as const satisfies readonly (keyof EmailTokenRow)[]

export const emailTokenColumns = (token: EmailToken): EmailTokenRow => ({
  digest: token.digest,
  purpose: token.purpose,
  email: token.email,
  created_at: token.createdAt,
  expires_at: token.expiresAt,
})

/** Selects e-mail tokens with the property names of `EmailToken`; a condition must follow. */
export const selectEmailToken = `SELECT digest, purpose, email, created_at AS "createdAt", expires_at AS "expiresAt",
  (SELECT id FROM users WHERE key = user_key) AS "userId" FROM email_tokens`
