import { Type } from '@sinclair/typebox'
import { Email, Name, NewPassword, PasswordHash, Strict } from './fields.ts'

/** An account that somebody else opens for its owner. */
export const NewAccount = (passwordMinLength: number) =>
  Strict({
    email: Email,
    password: Type.Optional(NewPassword(passwordMinLength)),
    passwordHash: Type.Optional(PasswordHash),
    firstName: Type.Optional(Name),
    lastName: Type.Optional(Name),
    emailVerified: Type.Optional(Type.Boolean()),
  })
