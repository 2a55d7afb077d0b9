/** crypt with SHA-256 (`$5$`) and SHA-512 (`$6$`), as Linux and `mkpasswd` write it. */
import { createHash } from 'node:crypto'
import { type HashFormat, isEqual, MALFORMED, OUR_TIME, TOO_COSTLY } from './format.ts'

const BASE64 = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const SHA_CRYPT = /^\$([56])\$(?:rounds=([1-9]\d{0,8})\$)?([^$\n:]{0,16})\$([./0-9A-Za-z]{43,86})$/

/** passlib writes up to 656,000, which take two seconds. */
const ROUNDS = { least: 1_000, byDefault: 5_000, most: 800_000 }

interface Variant {
  readonly digest: 'sha256' | 'sha512'
  /** Characters of the result. */
  readonly length: number
  /** Milliseconds of 1,000 rounds. */
  readonly time: number
  /** The bytes of each group of four characters, the highest first; -1 is zero. */
  readonly order: readonly (readonly [number, number, number])[]
}

/** Each group follows from the one before: the three bytes rotate by a position, and each grows by one. */
const orderOf = (start: readonly [number, number, number], groups: number, rotateLeft: boolean) => {
  const order: (readonly [number, number, number])[] = []
  let [a, b, c] = start
  for (let group = 0; group < groups; group += 1) {
    order.push([a, b, c])
    ;[a, b, c] = rotateLeft ? [b + 1, c + 1, a + 1] : [c + 1, a + 1, b + 1]
  }
  return order
}

const VARIANTS: Readonly<Record<string, Variant>> = {
  '5': {
    ...{ digest: 'sha256', length: 43, time: 3.2 },
    order: [...orderOf([0, 10, 20], 10, false), [-1, 31, 30]],
  },
  '6': {
    ...{ digest: 'sha512', length: 86, time: 3.6 },
    order: [...orderOf([0, 21, 42], 21, true), [-1, -1, 63]],
  },
}

/** @returns a text of `length` characters: the last group has fewer than four. */
const encode = (bytes: Buffer, { order, length }: Variant): string => {
  const byteAt = (index: number): number => (index === -1 ? 0 : (bytes[index] ?? 0))
  const groups = order.map(([high, middle, low]) => {
    const value = (byteAt(high) << 16) | (byteAt(middle) << 8) | byteAt(low)
    return [0, 6, 12, 18].map(shift => BASE64.charAt((value >> shift) & 63)).join('')
  })
  return groups.join('').slice(0, length)
}

/** Repeats bytes until there are `length`. */
const filled = (bytes: Buffer, length: number): Buffer => Buffer.alloc(length, bytes)

/** The algorithm of Ulrich Drepper's "Unix crypt using SHA-256 and SHA-512". */
const compute = (variant: Variant, password: Buffer, salt: Buffer, rounds: number): string => {
  const digestOf = (...parts: readonly Buffer[]): Buffer =>
    createHash(variant.digest).update(Buffer.concat(parts)).digest()
  const alternate = digestOf(password, salt, password)
  const first = [password, salt, filled(alternate, password.length)]
  for (let bits = password.length; bits > 0; bits >>= 1) first.push(bits & 1 ? alternate : password)
  let result = digestOf(...first)
  const p = filled(digestOf(...Array<Buffer>(password.length).fill(password)), password.length)
  const s = filled(digestOf(...Array<Buffer>(16 + (result[0] ?? 0)).fill(salt)), salt.length)
  for (let round = 0; round < rounds; round += 1) {
    const isOdd = round % 2 === 1
    const parts = [isOdd ? p : result]
    if (round % 3 !== 0) parts.push(s)
    if (round % 7 !== 0) parts.push(p)
    parts.push(isOdd ? result : p)
    result = digestOf(...parts)
  }
  return encode(result, variant)
}

const parse = (encoded: string) => {
  const [matched, number = '', rounds = String(ROUNDS.byDefault), salt = '', expected = ''] =
    SHA_CRYPT.exec(encoded) ?? []
  const variant = VARIANTS[number]
  if (matched === undefined || variant?.length !== expected.length) return null
  return { variant, rounds: Number(rounds), salt, expected }
}

const timeOf = ({ variant, rounds }: NonNullable<ReturnType<typeof parse>>): number =>
  (rounds / 1_000) * variant.time

export const shaCrypt = {
  start: /^\$[56]\$/,
  violation(encoded) {
    const hash = parse(encoded)
    if (hash === null || hash.rounds < ROUNDS.least) return MALFORMED
    return hash.rounds > ROUNDS.most ? TOO_COSTLY : null
  },
  cost: encoded => timeOf(parse(encoded) as NonNullable<ReturnType<typeof parse>>) / OUR_TIME,
  verify(password: string, encoded: string): boolean {
    const hash = parse(encoded)
    if (hash === null) return false
    const { variant, rounds, salt, expected } = hash
    const computed = compute(variant, Buffer.from(password), Buffer.from(salt), rounds)
    return isEqual(Buffer.from(computed), Buffer.from(expected))
  },
} satisfies HashFormat & { verify(password: string, encoded: string): boolean }
