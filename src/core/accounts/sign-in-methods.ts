/** Ways to sign in, as features and the core declare them. `SignIns` follows the declarations. */
import type { TProperties } from '@sinclair/typebox'
import type { DeclaredError, ErrorName } from '#base/errors'

/** @template Settings the values of the settings of its feature. */
export interface SignInMethod<Settings = never> {
  /** Values of RFC 8176, such as `otp`. With `mfa`, last, it counts as two factors. */
  readonly amr: readonly string[]
  /** The error of a wrong or used proof, counted as `wrong_credentials`. */
  readonly rejection: ErrorName | DeclaredError
  /** Whether users with an authenticator app send a code too. */
  readonly needsSecondFactor: boolean
  /**
   * Whether it proves the mailbox, so that a sign-in confirms the e-mail. If that was never confirmed, somebody else may have opened the
   * account: the sign-in empties it (removes the password, sessions, keys, factors and pending mails).
   */
  readonly provesMailbox?: true
  /** Whether it ends with a new password, which is then the way to sign in. */
  readonly setsPassword?: true
  /** What the details of its `user.signed-in` events have besides. */
  readonly details?: TProperties
  /** Whether the settings switch it on. By default it is on. */
  readonly isEnabled?: (settings: Settings) => boolean
  /** Which rows of its tables (`signsIn`) sign in. By default all. */
  readonly rows?: (settings: Settings) => SignInRows
}

/** The rows of a table that have one of these texts in a column. */
export interface SignInRows {
  readonly column: string
  readonly values: readonly string[]
}

export type SignInMethods<Settings = never> = Readonly<Record<string, SignInMethod<Settings>>>

const MULTI_FACTOR = 'mfa'

/** The name of two factors in OpenID Connect PAPE, which identity providers use as `acr`. */
export const MULTI_FACTOR_POLICY = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor'

export const isMultiFactor = (amr: readonly string[]): boolean => amr.includes(MULTI_FACTOR)

const CODE = 'otp'

/** Adds values; `mfa` stays last. */
const withValues = (amr: readonly string[], ...values: readonly string[]): readonly string[] => {
  const all = new Set([...amr, ...values])
  return all.delete(MULTI_FACTOR) ? [...all, MULTI_FACTOR] : [...all]
}

export const amrWithCode = (amr: readonly string[]): readonly string[] => withValues(amr, CODE, MULTI_FACTOR)

export const amrWithSecondFactor = (amr: readonly string[]): readonly string[] =>
  withValues(amr, MULTI_FACTOR)

export const amrWithPassword = (amr: readonly string[]): readonly string[] => withValues(amr, 'pwd')

export interface ProvedWith {
  readonly password: boolean
  /** Whether it was a code of an authenticator app, or a recovery code. */
  readonly code: boolean
}

/**
 * What a session has proved after a proof in it. A code is a second factor only beside another proof: in a session from before 0.3.0, where
 * none is known, two codes of one app would look like two factors.
 */
export const amrAfterProof = (amr: readonly string[], { password, code }: ProvedWith): readonly string[] => {
  const before = password ? amrWithPassword(amr) : amr
  return code && before.length > 0 ? amrWithCode(before) : before
}

export interface MethodAmr {
  readonly name: string
  readonly amr: readonly string[]
}

export interface RemovedProofs {
  /** Sign-in methods whose sessions have proved nothing any more: codes were a factor beside them alone. */
  readonly methods: readonly string[]
  /** What sessions of other methods do not prove any more. */
  readonly values: readonly string[]
}

export const REMOVED_APP: RemovedProofs = { methods: [], values: [CODE] }

export const removedMethod = ({ name, amr }: MethodAmr): RemovedProofs => ({
  methods: [name],
  values: amr.filter(value => value !== MULTI_FACTOR),
})

/** @param methods of the factors that sign in by themselves. */
export const removedFactors = (methods: readonly string[]): RemovedProofs => ({
  methods,
  values: [CODE, MULTI_FACTOR],
})

/** What a session still proves: what its own method gives stays, `mfa` too. @param methods all of the service. */
export const amrAfterRemoval = (
  { method, amr }: { readonly method: string | null; readonly amr: readonly string[] },
  { methods: removed, values }: RemovedProofs,
  methods: readonly MethodAmr[],
): readonly string[] => {
  if (method !== null && removed.includes(method)) return []
  if (!amr.some(value => values.includes(value))) return amr
  const own = methods.find(({ name }) => name === method)?.amr ?? []
  return amr.filter(value => own.includes(value) || !(value === MULTI_FACTOR || values.includes(value)))
}

/** A session in which an administrator acts as a user, who has not signed in. */
export const IMPERSONATION = { method: 'impersonation', amr: [] } as const

export const CORE_SIGN_IN_METHODS = {
  password: { amr: ['pwd'], rejection: 'wrongCredentials', needsSecondFactor: true },
  /** A sign-in with the link of a mail and a new password. */
  passwordReset: {
    amr: ['otp'],
    rejection: 'badEmailToken',
    needsSecondFactor: true,
    provesMailbox: true,
    setsPassword: true,
  },
} as const satisfies SignInMethods
