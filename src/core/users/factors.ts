/** Factors of users: ways to prove their identity besides the password. */

/** `passkey`: a passkey signs in by itself. `totp`: every sign-in with the password needs a code too. */
export const FACTORS = ['passkey', 'totp'] as const

export type Factor = (typeof FACTORS)[number]

/** Shared, because most users have none. */
export const NO_FACTORS: readonly Factor[] = Object.freeze([])

/** Whether a password alone does not sign the user in. */
export const needsCode = ({ factors }: { readonly factors: readonly Factor[] }): boolean =>
  factors.includes('totp')
