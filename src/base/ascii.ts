/**
 * Letter case and white space of ASCII alone, for text that is ASCII once it is valid: e-mails, ids, names of scopes and roles.
 * `toLowerCase`, `toUpperCase` and `trim` also change other characters, some of them into ASCII: the lower case of U+212A is k, the
 * upper case of U+017F is S. Text that is changed so before its check passes as that of another user.
 */

export const asciiLowerCase = (text: string): string =>
  text.replaceAll(/[A-Z]+/g, letters => letters.toLowerCase())

export const asciiUpperCase = (text: string): string =>
  text.replaceAll(/[a-z]+/g, letters => letters.toUpperCase())

/** Blank, tab, line feed, vertical tab, form feed and carriage return. */
const isSpace = (code: number): boolean => code === 0x20 || (code >= 0x09 && code <= 0x0d)

/** The text without white space at both ends. A loop, because `/\s+$/` takes quadratic time. */
export const asciiTrim = (text: string): string => {
  let [start, end] = [0, text.length]
  while (start < end && isSpace(text.charCodeAt(start))) start += 1
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}
