/** Characters for fast-check: `fc.string({ unit: codePoint })`. */
import fc from 'fast-check'

const SURROGATES = { first: 0xd800, count: 0x800 }

const characterAt = (index: number): string =>
  String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count)

const indexOf = (text: unknown): number => {
  const code = typeof text === 'string' ? (text.codePointAt(0) ?? 0) : 0
  const index = code < SURROGATES.first ? code : code - SURROGATES.count
  if (characterAt(index) !== text) throw new Error('not a character')
  return index
}

/** Any character of Unicode, as `unit: 'binary'` gives, whose index of all 1.1 million characters takes seconds of a core to build. */
export const codePoint = fc.nat(0x10ffff - SURROGATES.count).map(characterAt, indexOf)
