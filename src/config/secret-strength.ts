/** Whether a chosen secret can be guessed: it is published, or has low entropy. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Characters that are compared: a secret with the same beginning as a published one is a copy or a variant of it. */
const COMPARED = 16

/**
 * A line of `published-secrets.txt`: 48 bits of a digest, so that the repository does not contain the secrets. One in 10^11
 * random keys is taken for a published one.
 */
export const fingerprint = (secret: string): string =>
  createHash('sha256')
    .update(secret.slice(0, COMPARED).toLowerCase())
    .digest()
    .subarray(0, 6)
    .toString('base64url')

/** `scripts/add-published-secrets.ts` writes it. */
export const PUBLISHED_FILE = new URL('published-secrets.txt', import.meta.url)

let published: ReadonlySet<string> | null = null

const isPublished = (secret: string): boolean => {
  published ??= new Set(readFileSync(PUBLISHED_FILE, 'utf8').split('\n'))
  // A short example is often repeated to reach the minimum length.
  const [, unit = secret] = /^(.{8,}?)[-_.]?(?:\1[-_.]?)+$/.exec(secret) ?? []
  return published.has(fingerprint(secret)) || published.has(fingerprint(unit))
}

/**
 * Adjacent characters in these, in either direction, are easy to guess. The keyboard graphs of `passwords/policy.ts` would
 * cost every start 30 ms.
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
  return isPublished(secret) ? 'is a published example' : null
}
