/** Whether a chosen secret can be guessed: it has low entropy, or is the example of the documents. */

/** The admin key that README and docs/ show, compared without letter case and with whatever follows. */
const EXAMPLE = 'an-admin-key-to-play-with'

/**
 * Adjacent characters in these, in either direction, are easy to guess. The keyboard graphs of `passwords/policy.ts` would slow down
 * every start.
 */
const SEQUENCES = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm'].flatMap(
  sequence => [sequence, [...sequence].reverse().join('')],
)

/** Shorter runs are coincidences. */
const SHORTEST_RUN = 3

/** How many characters from `start` on form a run. `isRun` holds for every beginning of a run. */
const runLength = (text: string, start: number, isRun: (run: string) => boolean): number => {
  let length = 1
  while (start + length < text.length && isRun(text.slice(start, start + length + 1))) length += 1
  return length
}

/** The length of a text in which a sequence counts as two characters, its ends, and a repetition as one. */
const effectiveLength = (text: string): number => {
  let count = 0
  let at = 0
  while (at < text.length) {
    const sequence = runLength(text, at, run => SEQUENCES.some(each => each.includes(run)))
    const repeated = runLength(text, at, run => text.lastIndexOf(run, at - 1) !== -1 && at > 0)
    const length = Math.max(sequence, repeated)
    if (length < SHORTEST_RUN) {
      count += 1
      at += 1
      continue
    }
    count += repeated === length ? 1 : 2
    at += length
  }
  return count
}

/** Shannon entropy per character, in bits. */
const bitsPerCharacter = (text: string): number => {
  let bits = 0
  for (const { length } of Map.groupBy(text, character => character).values())
    bits -= (length / text.length) * Math.log2(length / text.length)
  return bits
}

/** Characters that are measured: a strong beginning suffices. */
const MEASURED = 256

/**
 * The bits that a text of this length must have. Random keys of 128 bits measure at least 60 in every notation,
 * `password12345678` 39. Of random keys with only 16 hexadecimal digits, one in a hundred is refused.
 */
const bitsNeeded = ({ length }: string): number => Math.min(2.5 * length, 64)

/** An unfilled template: `<a 32 character secret>`, `${JWT_SECRET}`. */
const PLACEHOLDER = /^(?:<.*>|\$\{.*\}|\{\{.*\}\})$/

/** @returns why a secret is weak, in words that follow its name; `null` for a strong one. */
export const weakness = (secret: string): string | null => {
  if (PLACEHOLDER.test(secret)) return 'is a placeholder'
  const text = secret.slice(0, MEASURED).toLowerCase()
  if (effectiveLength(text) * bitsPerCharacter(text) < bitsNeeded(text)) return 'is too easy to guess'
  return text.startsWith(EXAMPLE) ? 'is the example of the documents' : null
}
