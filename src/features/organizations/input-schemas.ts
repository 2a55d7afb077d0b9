/** TypeBox schemas of input that routes and commands share. */
import { Type } from '@sinclair/typebox'
import { Strict } from '#http/validation/schemas'
import { ERRORS } from './definitions.ts'
import { slugViolations } from './slugs.ts'

export const MAX_ROLES = 20

/** What no name needs but a link: names go into mails to strangers, which must not advertise another site. */
const LINK = /:\/\/|www\./i

export const Name = Type.String({
  normalize: 'trim',
  minLength: 1,
  maxLength: 100,
  personName: true,
  violations: (name: string) => (LINK.test(name) ? [ERRORS.nameWithLink.message] : []),
  examples: ['Example Inc.'],
})

export const Slug = Type.String({
  normalize: 'lower',
  violations: slugViolations,
  description: 'Unique: 3 to 63 of a to z and 0 to 9, with single hyphens between them',
  examples: ['example-inc'],
})

export const MaxMembers = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: 1_000_000,
  description: 'Seats; `null` for any number',
  examples: [50],
})

export const NewOrganization = Strict({ name: Name, slug: Type.Optional(Slug) })

/** @param known every role of the service. */
export const Roles = (known: readonly string[]) =>
  Type.Array(Type.Unsafe<string>({ type: 'string', enum: [...known] }), {
    minItems: 1,
    maxItems: MAX_ROLES,
    uniqueItems: true,
    examples: [['member']],
  })

export const MemberRoles = (known: readonly string[]) => Strict({ roles: Roles(known) })
