/** Whether a secret that somebody chose can be guessed: it is published, or its text has little in it. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Characters of a published secret that are compared: a secret that begins with as many of one is a copy, or a variant. */
const COMPARED = 16

/**
 * What stands for a published secret in `published-secrets.txt`: 48 bits of a digest, so that the repository does not hold
 * the secrets themselves. One in 10^11 random keys is taken for a published one.
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
  // An example that is too short is often written twice.
  const [, unit = secret] = /^(.{8,}?)[-_.]?(?:\1[-_.]?)+$/.exec(secret) ?? []
  return published.has(fingerprint(secret)) || published.has(fingerprint(unit))
}

/** Neighbours in these are no news to whoever guesses, in either direction. */
const SEQUENCES = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm'].flatMap(
  sequence => [sequence, [...sequence].reverse().join('')],
)

/** What fewer characters repeat or continue is a coincidence. */
const SHORTEST_RUN = 3

/** How many characters from `start` on satisfy `isRun`, which holds for every beginning of a run. */
const runLength = (text: string, start: number, isRun: (run: string) => boolean): number => {
  let length = 1
  while (start + length < text.length && isRun(text.slice(start, start + length + 1))) length += 1
  return length
}

/** How many characters are left when a sequence counts as two, its ends, and what was there before as one. */
const countNews = (text: string): number => {
  let news = 0
  let at = 0
  while (at < text.length) {
    const sequence = runLength(text, at, run => SEQUENCES.some(each => each.includes(run)))
    const repeated = runLength(text, at, run => text.lastIndexOf(run, at - 1) !== -1 && at > 0)
    const length = Math.max(sequence, repeated)
    if (length < SHORTEST_RUN) {
      news += 1
      at += 1
      continue
    }
    news += repeated === length ? 1 : 2
    at += length
  }
  return news
}

/** Bits of each character, by how often each occurs (Shannon). */
const bitsOfCharacter = (text: string): number => {
  let bits = 0
  for (const { length } of Map.groupBy(text, character => character).values())
    bits -= (length / text.length) * Math.log2(length / text.length)
  return bits
}

/** Characters that are measured: a text whose beginning is good enough stays so. */
const MEASURED = 256

/**
 * What a text of this length must have, in bits. Random keys of 128 bits measure 60 and more in every notation,
 * `password12345678` 39. Of random keys with 16 hexadecimal digits, which is little, one in a hundred is refused.
 */
const bitsNeeded = ({ length }: string): number => Math.min(2.5 * length, 64)

/** `<a 32 character secret>`, `${JWT_SECRET}`: what a template was to be filled with. */
const PLACEHOLDER = /^(?:<.*>|\$\{.*\}|\{\{.*\}\})$/

/** @returns why a secret is no secret, in words that follow its name; `null` when nothing speaks against it. */
export const weakness = (secret: string): string | null => {
  if (PLACEHOLDER.test(secret)) return 'is a placeholder'
  const text = secret.slice(0, MEASURED).toLowerCase()
  if (countNews(text) * bitsOfCharacter(text) < bitsNeeded(text)) return 'is too easy to guess'
  return isPublished(secret) ? 'is a published example' : null
}
