/** The reads by a key that differ only in how the engines write parameters. Without joins, see `selectUser`. */
import { SESSION_COLUMNS, selectEmailToken, selectUser } from './rows.ts'

/** @param parameter the placeholder of a parameter by its number, from 1 on. */
export const readStatements = (parameter: (number: number) => string) => ({
  SELECT_BY_ID: `${selectUser()} WHERE id = ${parameter(1)}`,
  SELECT_BY_EMAIL: `${selectUser('password_hash')} WHERE email = ${parameter(1)}`,
  SELECT_EMAIL_TOKEN: `${selectEmailToken} WHERE digest = ${parameter(1)} AND expires_at > ${parameter(2)}`,
  LIST_SESSIONS: `SELECT ${SESSION_COLUMNS.join(', ')} FROM sessions
    WHERE user_key = (SELECT key FROM users WHERE id = ${parameter(1)})
      AND expires_at > ${parameter(2)} AND last_request_at > ${parameter(3)}
    ORDER BY created_at DESC, id DESC LIMIT ${parameter(4)}`,
})
