/** The keywords that schemas can use beside those of JSON Schema. */
import type { FuncKeywordDefinition } from 'ajv'
import { asciiLowerCase, asciiTrim, asciiUpperCase } from '#base/ascii'
import { hashViolation } from '#core/passwords/formats'
import { passwordViolations } from '#core/passwords/policy'
import { canonicalLocale, INVALID_LOCALE } from '#core/users/locale'
import { canonicalEmail } from '#core/users/user'
import type { FieldViolation } from './field-errors.ts'
import { emailViolations, idListViolations, nameViolations, newEmailViolations } from './formats.ts'
import { metadataViolations, type ValidateMetadata } from './metadata.ts'

interface Parent {
  readonly parentData: Record<string | number, unknown>
  readonly parentDataProperty: string | number
}

const NORMALIZE: Readonly<Record<string, (text: string) => string>> = {
  trim: text => text.trim(),
  email: canonicalEmail,
  lower: asciiLowerCase,
  locale: text => canonicalLocale(asciiTrim(text)) ?? text,
  base32: text => asciiUpperCase(text).replace(/=+$/, ''),
}

/** `normalize: 'trim' | 'email' | 'lower' | 'locale' | 'base32'`: changes the text in place, before its length and format are checked. */
const normalize = (name: string, text: string, _schema: unknown, parent?: Parent): boolean => {
  if (parent !== undefined) parent.parentData[parent.parentDataProperty] = NORMALIZE[name]?.(text) ?? text
  return true
}

interface KeywordValidator {
  (
    value: unknown,
    text: string,
    schema?: { readonly minLength?: number; readonly [keyword: string]: unknown },
    parent?: Parent,
  ): boolean
  errors?: Pick<FieldViolation, 'keyword' | 'message' | 'params'>[]
}

/** Reports the messages as Ajv expects it. @returns whether the value is valid. */
const report = (keyword: string, validate: KeywordValidator, messages: readonly string[]): boolean => {
  validate.errors = messages.map(message => ({ keyword, message, params: {} }))
  return messages.length === 0
}

/** `chosenPassword: true`: the rules for new passwords. */
const chosenPassword: KeywordValidator = (_on, text, schema, parent) =>
  report(
    'chosenPassword',
    chosenPassword,
    passwordViolations(text, schema?.minLength ?? 0, parent?.parentData.email),
  )

/** `emailAddress: 'new' | 'known'`: the rules for new addresses, or for those that existing accounts may have. */
const emailAddress: KeywordValidator = (kind, email) =>
  report('emailAddress', emailAddress, kind === 'new' ? newEmailViolations(email) : emailViolations(email))

const personName: KeywordValidator = (_on, name) => report('personName', personName, nameViolations(name))

/** `languageTag: true`: a locale. */
const languageTag: KeywordValidator = (_on, tag) =>
  report('languageTag', languageTag, canonicalLocale(tag) === null ? [INVALID_LOCALE] : [])

/** `passwordHash: true`: a hash of another service, in a format that can be verified here. */
const passwordHash: KeywordValidator = (_on, encoded) => {
  const violation = hashViolation(encoded)
  return report('passwordHash', passwordHash, violation === null ? [] : [violation])
}

/** `violations: text => messages`: a rule of its own, of a feature for example. */
const violations: KeywordValidator = (violationsOf, value) =>
  report('violations', violations, (violationsOf as (text: string) => readonly string[])(value))

/** `text: 'any' | 'storable'`: rejects text that a store could not return exactly (docs/design.md, "Contract"). */
const text: KeywordValidator = (kind, value) => {
  const violations: string[] = []
  if (!value.isWellFormed()) violations.push('must be valid Unicode')
  if (kind === 'storable' && value.includes('\0')) violations.push('must not contain NUL')
  return report('text', text, violations)
}

/** `idList: 100`: at most 100 ids, separated by commas. */
const idList: KeywordValidator = (limit, text) =>
  report('idList', idList, idListViolations(text, Number(limit)))

/**
 * `metadata: null` or the validator of an operator's schema: the rules of metadata, then those of that schema. It is not part of
 * the route's own schema, because its dialect is another one.
 */
const compileMetadata = (own: ValidateMetadata | null) => {
  const validate: ReturnType<NonNullable<FuncKeywordDefinition['compile']>> = (metadata, context) => {
    const violations = metadataViolations(metadata, own)
    validate.errors = violations.map(violation => ({
      ...violation,
      instancePath: `${context?.instancePath}${violation.instancePath}`,
    }))
    return violations.length === 0
  }
  return validate
}

const RULES = {
  text,
  emailAddress,
  personName,
  chosenPassword,
  passwordHash,
  violations,
  languageTag,
  idList,
}

export const KEYWORDS: readonly (FuncKeywordDefinition & { readonly keyword: string })[] = [
  { keyword: 'metadata', type: 'object', compile: compileMetadata, errors: true },
  // `before` runs it before the other keywords for strings.
  {
    keyword: 'normalize',
    type: 'string',
    modifying: true,
    before: 'maxLength',
    validate: normalize,
    errors: false,
  },
  ...Object.entries(RULES).map(([keyword, validate]) => ({
    keyword,
    type: 'string' as const,
    validate,
    errors: true,
  })),
]
