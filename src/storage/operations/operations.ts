/** Every write that both engines run. The SQLite engine calls them by name, because functions cannot be sent to its writer thread. */
import { removeEmailTokens, removeEvents } from './clean-up.ts'
import { addEmailToken, confirmEmail, resetPassword } from './email-tokens.ts'
import { record } from './events.ts'
import type { Operation, Query, Steps } from './operation.ts'
import { changePassword, rehash } from './passwords.ts'
import { revokeSession, revokeSessions } from './sessions.ts'
import { removeUser, updateUser } from './users.ts'
import type { UncachedWrite, Write } from './write.ts'

export const OPERATIONS = {
  updateUser,
  removeUser,
  revokeSession,
  revokeSessions,
  rehash,
  changePassword,
  addEmailToken,
  confirmEmail,
  resetPassword,
  record,
  removeEmailTokens,
  removeEvents,
} satisfies Record<string, Operation | ((...args: never[]) => Query<UncachedWrite<unknown>>)>

export type Operations = typeof OPERATIONS

/** The result of an operation, without what it invalidates. */
export type ResultOf<Name extends keyof Operations> =
  ReturnType<Operations[Name]> extends Query<{ result: infer Result }>
    ? Result
    : ReturnType<Operations[Name]> extends Generator<unknown, { result: infer Result }, never>
      ? Result
      : never

/** @returns the operation with its arguments, which the PostgreSQL engine then runs. */
export const startOperation = <Name extends keyof Operations>(
  name: Name,
  args: Parameters<Operations[Name]>,
) =>
  (
    OPERATIONS[name] as unknown as (
      ...args: Parameters<Operations[Name]>
    ) => Steps<Write<ResultOf<Name>>> | Query<UncachedWrite<ResultOf<Name>>>
  )(...args)
