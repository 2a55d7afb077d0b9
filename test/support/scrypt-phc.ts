import { scryptSync } from 'node:crypto'

/** Base64 without padding, as in PHC strings. */
export const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')

export const scryptPhc = (password: string, salt: Buffer, logCost: number, r: number, p: number): string => {
  const digest = scryptSync(password, salt, 32, { cost: 2 ** logCost, blockSize: r, parallelization: p })
  return `$scrypt$ln=${logCost},r=${r},p=${p}$${base64(salt)}$${base64(digest)}`
}
