/** How long the tokens in mails can be used, in milliseconds. Mails say so, and the use cases hold to it. */
const HOUR = 3_600_000

export const VERIFICATION = 24 * HOUR
export const EMAIL_CHANGE = 24 * HOUR
export const PASSWORD_RESET = HOUR

export const LONGEST_LIFETIME = Math.max(VERIFICATION, EMAIL_CHANGE, PASSWORD_RESET)
