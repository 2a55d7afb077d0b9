/** Languages of users: tags of BCP 47. */

/** Characters (RFC 5646 §4.4.1). */
export const LOCALE_MAX_LENGTH = 35

export const INVALID_LOCALE = 'must be a language tag (BCP 47), such as de or en-GB'

/** Letters of a language. The registry has no longer ones, so `english` is a mistake. */
const LANGUAGE = /^[a-z]{2,3}(?:-|$)/

/** @returns the tag as it is stored, such as `en-GB`; `null` if it is none. */
export const canonicalLocale = (text: string): string | null => {
  try {
    const [locale = ''] = Intl.getCanonicalLocales(text)
    return LANGUAGE.test(locale) ? locale : null
  } catch {
    return null
  }
}

/** @param tags as a client prefers them, possibly `*` or no tags at all. @returns the first one that can be stored. */
export const firstLocale = (tags: readonly string[]): string | null => {
  for (const tag of tags) {
    const locale = canonicalLocale(tag)
    if (locale !== null && locale.length <= LOCALE_MAX_LENGTH) return locale
  }
  return null
}
