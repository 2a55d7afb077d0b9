/** What is taken in more than one place, as TypeBox schemas. */
import { type TProperties, Type } from '@sinclair/typebox'
import { PASSWORD_MAX_LENGTH } from '../auth/passwords.ts'

/** Strict: a property that is not declared is refused. */
export const Strict = <T extends TProperties>(properties: T, options = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

/** RFC 5321 §4.5.3.1.3 gives a path 256 octets with its two brackets. */
export const Email = Type.String({
  normalize: 'email',
  format: 'email',
  maxLength: 254,
  examples: ['ann@example.com'],
})

/** Characters are Unicode code points; `null` clears the name. */
export const Name = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  normalize: 'trim',
  minLength: 1,
  maxLength: 128,
  examples: ['Ann'],
})

/** For the pages at /docs: long and uncommon enough for any configuration. */
export const EXAMPLE_PASSWORD = 'four hens crossed the moat'

/** A password that is chosen; NUL is a character like any other. */
export const NewPassword = (minLength: number) =>
  Type.String({
    minLength,
    maxLength: PASSWORD_MAX_LENGTH,
    chosenPassword: true,
    text: 'any',
    format: 'password',
    examples: [EXAMPLE_PASSWORD],
  })

/** What another service has made of a password. */
export const PasswordHash = Type.String({ passwordHash: true })
