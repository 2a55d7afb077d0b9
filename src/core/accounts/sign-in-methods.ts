/** Ways to sign in, as features and the core declare them. `SignIns` follows the declarations. */
import type { TProperties } from '@sinclair/typebox'
import type { DeclaredError, ErrorName } from '#base/errors'

/** @template Settings the values of the settings of its feature. */
export interface SignInMethod<Settings = never> {
  /** What it verifies, in values of RFC 8176, such as `otp`. With `mfa`, last, it counts as two factors. */
  readonly amr: readonly string[]
  /** The error of a proof that is wrong or not valid any more. It is counted as `wrong_credentials`. */
  readonly rejection: ErrorName | DeclaredError
  /** Whether users with an authenticator app send a code too. */
  readonly needsSecondFactor: boolean
  /**
   * Whether only somebody who reads the mails of the account can use it. A sign-in then confirms the e-mail. If it was never confirmed,
   * somebody else may have opened the account: the sign-in empties it (removes the password, sessions, keys, factors and pending mails).
   */
  readonly provesMailbox?: true
  /** Whether it ends with a new password. Then the password is the way to sign in, and the method is none. */
  readonly setsPassword?: true
  /** What the details of its `user.signed-in` events have besides. */
  readonly details?: TProperties
  /** Whether the settings switch it on. By default it is on. */
  readonly isEnabled?: (settings: Settings) => boolean
  /** Which rows of its tables (`signsIn`) sign in, where that depends on settings. By default all do. */
  readonly rows?: (settings: Settings) => SignInRows
}

/** The rows of a table that have one of these texts in a column. */
export interface SignInRows {
  readonly column: string
  readonly values: readonly string[]
}

export type SignInMethods<Settings = never> = Readonly<Record<string, SignInMethod<Settings>>>

/** The value of RFC 8176 for an authentication with more than one factor. */
const MULTI_FACTOR = 'mfa'

export const isMultiFactor = (amr: readonly string[]): boolean => amr.includes(MULTI_FACTOR)

/** What a code of an authenticator app, or a recovery code, proves. */
const CODE = 'otp'

/** Adds values; `mfa` stays last. */
const withValues = (amr: readonly string[], ...values: readonly string[]): readonly string[] => {
  const all = new Set([...amr, ...values])
  return all.delete(MULTI_FACTOR) ? [...all, MULTI_FACTOR] : [...all]
}

/** The `amr` of a sign-in to which a code of an authenticator app, or a recovery code, is added. */
export const amrWithCode = (amr: readonly string[]): readonly string[] => withValues(amr, CODE, MULTI_FACTOR)

/** The `amr` of a sign-in to which a second factor of any kind is added. */
export const amrWithSecondFactor = (amr: readonly string[]): readonly string[] =>
  withValues(amr, MULTI_FACTOR)

/** The `amr` of a session in which the user has sent the password again. */
export const amrWithPassword = (amr: readonly string[]): readonly string[] => withValues(amr, 'pwd')

/** What a user has sent to prove their identity again. */
export interface ProvedWith {
  readonly password: boolean
  /** Whether it was a code of an authenticator app, or a recovery code. */
  readonly code: boolean
}

/**
 * What a session has proved after a proof in it. A code is a second factor only beside another proof. Where none is known, as in a session
 * from before 0.3.0, a code adds nothing, because two codes of one app would look like two factors.
 */
export const amrAfterProof = (amr: readonly string[], { password, code }: ProvedWith): readonly string[] => {
  const before = password ? amrWithPassword(amr) : amr
  return code && before.length > 0 ? amrWithCode(before) : before
}

/** A sign-in method of the service. */
export interface MethodAmr {
  readonly name: string
  /** What it verifies, in values of RFC 8176, such as `otp`. */
  readonly amr: readonly string[]
}

/** What a user has removed. */
export interface RemovedProofs {
  /** The names of sign-in methods: sessions that they have opened have proved nothing, because codes were a factor beside them alone. */
  readonly methods: readonly string[]
  /** What the method or factor proves in sessions of other methods. */
  readonly values: readonly string[]
}

/** The user's authenticator app with its recovery codes. */
export const REMOVED_APP: RemovedProofs = { methods: [], values: [CODE] }

/** A sign-in method of the user. */
export const removedMethod = ({ name, amr }: MethodAmr): RemovedProofs => ({
  methods: [name],
  values: amr.filter(value => value !== MULTI_FACTOR),
})

/** Every factor of the user, whichever of them was the second one. @param methods of the factors that sign in by themselves. */
export const removedFactors = (methods: readonly string[]): RemovedProofs => ({
  methods,
  values: [CODE, MULTI_FACTOR],
})

/** What a session still proves after a removal: what its own method gives stays, `mfa` too. @param methods those of the service. */
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

/** The methods of the core. */
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
