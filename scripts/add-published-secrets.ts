/**
 * Adds secrets that are published somewhere, one a line of standard input, to those that the service refuses
 * (`src/config/secret-strength.ts`): `node scripts/add-published-secrets.ts < list.txt`. The file holds fingerprints, not the secrets.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fingerprint, PUBLISHED_FILE } from '../src/config/secret-strength.ts'

/** Shorter ones are refused by their length or their entropy, also when they are repeated. */
const MIN_LENGTH = 12

const added = (await text(process.stdin))
  .split('\n')
  .map(line => line.trim())
  .filter(secret => secret.length >= MIN_LENGTH && /^[\x21-\x7e]+$/.test(secret))
  .map(fingerprint)
const known = readFileSync(PUBLISHED_FILE, 'utf8').split('\n').filter(Boolean)
const all = [...new Set([...known, ...added])].sort()
writeFileSync(PUBLISHED_FILE, `${all.join('\n')}\n`)
process.stdout.write(`${all.length - known.length} added, ${all.length} in all\n`)
