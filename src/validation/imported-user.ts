import { Type } from '@sinclair/typebox'
import { Email, Name, Strict } from './fields.ts'

const Moment = Type.String({ format: 'date-time' })

/** A line of what is imported. */
export const ImportedUser = Strict(
  {
    email: Email,
    passwordHash: Type.Optional(
      Type.String({ passwordHash: true, description: 'argon2 or scrypt in PHC form, or bcrypt' }),
    ),
    firstName: Type.Optional(Name),
    lastName: Type.Optional(Name),
    emailVerified: Type.Optional(Type.Boolean()),
    disabled: Type.Optional(Type.Boolean()),
    id: Type.Optional(Type.String({ normalize: 'lower', format: 'uuid' })),
    createdAt: Type.Optional(Moment),
    updatedAt: Type.Optional(Moment),
    lastRequestAt: Type.Optional(
      Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' }),
    ),
  },
  { title: 'ImportedUser' },
)
