/**
 * Runs before and after `npm pack`, and leaves out what only a checkout needs. The optional dependencies are its Node: in the
 * project of a host, `npm run` would prefer that Node to the host's. Its `imports` lead to TypeScript:
 * `dist/package.json` has those of the built files.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = join(import.meta.dirname, '..', 'package.json')
const ORIGINAL = `${FILE}.original`

// Also before: an earlier `npm pack` may have failed.
if (existsSync(ORIGINAL)) renameSync(ORIGINAL, FILE)

if (process.argv[2] === 'before') {
  const text = readFileSync(FILE, 'utf8')
  const { optionalDependencies: _node, imports: _imports, ...published } = JSON.parse(text)
  writeFileSync(ORIGINAL, text)
  writeFileSync(FILE, `${JSON.stringify(published, null, 2)}\n`)
}
