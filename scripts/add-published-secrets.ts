/**
 * Adds published secrets, one per line of standard input, to the list that the service rejects
 * (`src/config/secret-strength.ts`): `node scripts/add-published-secrets.ts < list.txt`. The list has fingerprints, not secrets.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fingerprint, PUBLISHED_FILE } from '../src/config/secret-strength.ts'

/** Shorter ones, also repeated, are rejected by their length or entropy anyway. */
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
