/** What schemas here can ask for besides JSON Schema's own keywords. */
import type { Ajv } from 'ajv'
import { hashViolation } from '../passwords/formats.ts'
import { passwordViolations } from '../passwords/policy.ts'
import { canonicalEmail } from '../users/user.ts'
import { emailFaults, idListViolations, nameFaults, newEmailFaults } from './formats.ts'

interface Fault {
  keyword: string
  message: string
  params: Record<string, unknown>
}

interface Parent {
  readonly parentData: Record<string | number, unknown>
  readonly parentDataProperty: string | number
}

const NORMALIZE: Readonly<Record<string, (text: string) => string>> = {
  trim: text => text.trim(),
  email: canonicalEmail,
  lower: text => text.toLowerCase(),
}

/** `normalize: 'trim'` and so on: changes the text in place, before its length and format are looked at. */
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
  errors?: Partial<Fault>[]
}

const faulty = (keyword: string, validate: KeywordValidator, messages: readonly string[]): boolean => {
  validate.errors = messages.map(message => ({ keyword, message, params: {} }))
  return messages.length === 0
}

/** `chosenPassword: true`: the rules for passwords that are chosen, as opposed to presented. */
const chosenPassword: KeywordValidator = (_on, text, schema, parent) =>
  faulty(
    'chosenPassword',
    chosenPassword,
    passwordViolations(text, schema?.minLength ?? 0, parent?.parentData.email),
  )

/** `emailAddress: 'new' | 'known'`: one for an account, or one that an account may have since the rules were others. */
const emailAddress: KeywordValidator = (kind, email) =>
  faulty('emailAddress', emailAddress, kind === 'new' ? newEmailFaults(email) : emailFaults(email))

/** `personName: true` */
const personName: KeywordValidator = (_on, name) => faulty('personName', personName, nameFaults(name))

/** `passwordHash: true`: what another service has made of a password, in a form that can be verified here. */
const passwordHash: KeywordValidator = (_on, encoded) => {
  const fault = hashViolation(encoded)
  return faulty('passwordHash', passwordHash, fault === null ? [] : [fault])
}

/** `text: 'any' | 'storable'`: what the store could not give back exactly is refused (DESIGN §4). */
const text: KeywordValidator = (kind, value) => {
  const faults: string[] = []
  if (!value.isWellFormed()) faults.push('must be valid Unicode')
  if (kind === 'storable' && value.includes('\0')) faults.push('must not contain NUL')
  return faulty('text', text, faults)
}

/** `idList: 100`: so many ids at most, with commas between them. */
const idList: KeywordValidator = (limit, text) =>
  faulty('idList', idList, idListViolations(text, Number(limit)))

export const addKeywords = (ajv: Ajv): void => {
  // `before` puts them ahead of the other keywords for strings.
  ajv.addKeyword({
    keyword: 'normalize',
    type: 'string',
    modifying: true,
    before: 'maxLength',
    validate: normalize,
    errors: false,
  })
  const rules = { text, emailAddress, personName, chosenPassword, passwordHash, idList }
  for (const [keyword, validate] of Object.entries(rules))
    ajv.addKeyword({ keyword, type: 'string', validate, errors: true })
}
