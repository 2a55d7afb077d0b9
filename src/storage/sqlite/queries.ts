/** Reads by a key. */
import { readStatements } from '../read-statements.ts'
import { SESSION_COLUMNS, selectUser } from '../rows.ts'

export const SELECT_SESSION = `SELECT user_key, ${SESSION_COLUMNS.join(', ')} FROM sessions WHERE id = ?`
export const SELECT_BY_KEY = `${selectUser()} WHERE key = ?`
export const { SELECT_BY_ID, SELECT_BY_EMAIL, SELECT_EMAIL_TOKEN, LIST_SESSIONS } = readStatements(() => '?')
