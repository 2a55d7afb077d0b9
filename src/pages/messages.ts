/** The API's errors in the language of a page. */
import { ERRORS, type ErrorName, type FieldErrors, sentence } from '../errors.ts'
import { type Html, html } from './html.ts'
import type { Language, Texts } from './texts.ts'

type Rule = readonly [RegExp, (rules: Texts['rules'], count: number) => string]

/** The messages of rules that forms can violate. */
const RULES: readonly Rule[] = [
  [/^is required$/, rules => rules.required],
  // Without the name of the field, which may be from a link of anybody.
  [/^is not allowed$/, rules => rules.unknown],
  [
    /^must have at least (\d+) characters?$/,
    (rules, count) => (count === 1 ? rules.required : rules.minLength(count)),
  ],
  [/^must have at most (\d+) characters?$/, (rules, count) => rules.maxLength(count)],
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

/** @returns `null` for a message that the dictionary does not have. */
const translated = (texts: Texts, field: string, message: string): string | null => {
  for (const [name, text] of Object.entries(texts.errors)) {
    const error = ERRORS[name as ErrorName]
    if (error.message === message && error.field === field) return text
  }
  for (const [pattern, text] of RULES) {
    const found = pattern.exec(message)
    if (found !== null) return text(texts.rules, Number(found[1]))
  }
  return null
}

/** An error of the API as a sentence. Without a translation it is the API's own, marked as English. */
export const errorSentence = (texts: Texts, language: Language, field: string, message: string): Html => {
  const text = translated(texts, field, message)
  if (text !== null) return html`${text}`
  const own = sentence(field, message)
  return language === 'en' ? html`${own}` : html`<span lang="en">${own}</span>`
}

/** All errors, each as a sentence. */
export const sentencesOf = (texts: Texts, language: Language, errors: FieldErrors): Html[] =>
  Object.entries(errors).flatMap(([field, messages]) =>
    messages.map(message => html`${errorSentence(texts, language, field, message)} `),
  )
