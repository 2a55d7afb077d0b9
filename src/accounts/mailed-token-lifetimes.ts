/** How long the tokens in mails can be used, in milliseconds. Mails say so, and the use cases hold to it. */
const HOUR = 3_600_000

export const VERIFICATION = 24 * HOUR
export const EMAIL_CHANGE = 24 * HOUR
export const PASSWORD_RESET = HOUR
