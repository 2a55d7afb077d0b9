/** phpass, as WordPress before 6.8 (`$P$`) and phpBB (`$H$`) use it: MD5, repeated. */
import { createHash } from 'node:crypto'
import { type HashFormat, isEqual, MALFORMED, OUR_TIME, TOO_COSTLY } from './format.ts'

const BASE64 = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const PHPASS = /^\$[PH]\$([./0-9A-Za-z])([./0-9A-Za-z]{8})([./0-9A-Za-z]{22})$/

/** Binary logarithms of the rounds: 13 is usual, 20 takes three seconds. */
const COSTS = { least: 7, most: 20 }

/** Milliseconds of 1,000 rounds. */
const TIME = 2.6

const logCostOf = (encoded: string): number => BASE64.indexOf(PHPASS.exec(encoded)?.[1] ?? '')

/** Three bytes become four characters, the lowest bits first. */
const encode = (bytes: Buffer): string => {
  let text = ''
  for (let at = 0; at < bytes.length; at += 3) {
    const group = bytes.subarray(at, at + 3)
    const value = group.reduce((sum, byte, index) => sum | (byte << (8 * index)), 0)
    for (let index = 0; index <= group.length; index += 1) text += BASE64.charAt((value >> (6 * index)) & 63)
  }
  return text
}

const md5 = (...parts: readonly (string | Buffer)[]): Buffer => {
  const hash = createHash('md5')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

export const phpass = {
  start: /^\$[PH]\$/,
  violation(encoded) {
    const logCost = logCostOf(encoded)
    if (!PHPASS.test(encoded) || logCost < COSTS.least) return MALFORMED
    return logCost > COSTS.most ? TOO_COSTLY : null
  },
  cost: encoded => (2 ** logCostOf(encoded) * TIME) / 1_000 / OUR_TIME,
  verify(password: string, encoded: string): boolean {
    const [, , salt = '', expected = ''] = PHPASS.exec(encoded) ?? []
    let digest = md5(salt, password)
    for (let round = 2 ** logCostOf(encoded); round > 0; round -= 1) digest = md5(digest, password)
    return isEqual(Buffer.from(encode(digest)), Buffer.from(expected))
  },
} satisfies HashFormat & { verify(password: string, encoded: string): boolean }
