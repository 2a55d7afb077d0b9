/** The API's errors in the language of a page. */
import { type ErrorDefinition, type FieldErrors, sentence } from '#base/errors'
import { fill } from '#base/texts'
import { type Html, html } from './html.ts'
import type { Texts } from './texts.ts'

type Rule = readonly [RegExp, (rules: Texts['rules'], found: string) => string]

/** The messages of rules that forms can violate. */
const RULES: readonly Rule[] = [
  [/^is required$/, rules => rules.required],
  // Without the name of the field, which may be from a link of anybody.
  [/^is not allowed$/, rules => rules.unknown],
  [
    /^must have at least (\d+) characters?$/,
    (rules, count) => (count === '1' ? rules.required : fill(rules.minLength, { count })),
  ],
  [/^must have at most (\d+) characters?$/, (rules, count) => fill(rules.maxLength, { count })],
  [/^must have at most (\d+) bytes/, (rules, count) => fill(rules.maxBytes, { count })],
  [/^must be at least (-?\d+)$/, (rules, least) => fill(rules.minimum, { least })],
  [/^must be at most (-?\d+)$/, (rules, most) => fill(rules.maximum, { most })],
  [/^must NOT have fewer than 1 items$/, rules => rules.none],
  [/^must not have the same entry twice$/, rules => rules.twice],
  [/^must be one of (.*)$/, (rules, values) => fill(rules.oneOf, { values })],
  [/^must be a valid id$/, rules => rules.id],
  [/^must be a role:/, rules => rules.role],
  [/^must be a timestamp/, rules => rules.timestamp],
  [/^must be object$/, rules => rules.object],
  [/^must be (?:integer|number)/, rules => rules.number],
  [/e-mail address$/, rules => rules.email],
  [/^is too commonly used/, rules => rules.common],
  [/visible character/, rules => rules.blank],
  [/^must not repeat a part/, rules => rules.repeated],
  [/^must not be a sequence/, rules => rules.pattern],
  [
    /^must (?:be valid Unicode|not contain NUL|not have (?:line breaks|characters))/,
    rules => rules.characters,
  ],
]

/** Errors of the API in the words of pages, by {@link errorKey}. */
export type ErrorTexts = ReadonlyMap<string, string>

const errorKey = (field: string, message: string): string => `${field} ${message}`

/** @param texts by the names of errors. */
export const errorTextsOf = (
  errors: Readonly<Record<string, ErrorDefinition>>,
  texts: Readonly<Record<string, string>>,
): ErrorTexts =>
  new Map(
    Object.entries(texts).flatMap(([name, text]) => {
      const error = errors[name]
      return error === undefined ? [] : [[errorKey(error.field, error.message), text] as const]
    }),
  )

/** What messages depend on. */
interface MessageContext {
  readonly texts: Texts
  readonly errorTexts: ErrorTexts
  readonly language: string
}

/** @returns `null` for a message that no dictionary has. */
const translated = ({ texts, errorTexts }: MessageContext, field: string, message: string): string | null => {
  const text = errorTexts.get(errorKey(field, message))
  if (text !== undefined) return text
  for (const [pattern, rule] of RULES) {
    const found = pattern.exec(message)
    if (found !== null) return rule(texts.rules, found[1] ?? '')
  }
  return null
}

/** An error of the API as a sentence. Without a translation it is the API's own, marked as English. */
export const errorSentence = (context: MessageContext, field: string, message: string): Html => {
  const text = translated(context, field, message)
  if (text !== null) return html`${text}`
  const own = sentence(field, message)
  return context.language === 'en' ? html`${own}` : html`<span lang="en">${own}</span>`
}

/** All errors, each as a sentence. */
export const sentencesOf = (context: MessageContext, errors: FieldErrors): Html[] =>
  Object.entries(errors).flatMap(([field, messages]) =>
    messages.map(message => html`${errorSentence(context, field, message)} `),
  )
