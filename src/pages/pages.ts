/** The templates of all hosted pages, which are loaded together. */
import { LANGUAGES, type Language } from './texts.ts'

export * from './access.ts'
export { documentOf } from './layout.ts'
export { errorTextsOf } from './messages.ts'
export * from './security.ts'
export { LANGUAGES } from './texts.ts'

const [DEFAULT_LANGUAGE] = Object.keys(LANGUAGES) as [Language]

/** @param choose picks the language that the browser likes best of some, or `false`. */
export const languageOf = (choose: (languages: string[]) => string | string[] | false): Language => {
  const chosen = choose(Object.keys(LANGUAGES))
  return typeof chosen === 'string' && Object.hasOwn(LANGUAGES, chosen)
    ? (chosen as Language)
    : DEFAULT_LANGUAGE
}
