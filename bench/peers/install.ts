/** The packages of the peers: not the project's, so `npm ci` leaves them out, and the bench fetches them when it needs them. */
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { start } from '../processes.ts'

const FOLDER = import.meta.dirname

const written = (file: string): number =>
  statSync(join(FOLDER, file), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** npm writes its own copy of the lockfile last: an installation that was cut short, or is older, does not count. */
const installed = (): boolean => written('node_modules/.package-lock.json') > written('package-lock.json')

/**
 * Says so before it fetches anything, on the standard error: the standard output may be JSON.
 * @throws {Error} with what npm wrote.
 */
export const installPeers = async (): Promise<void> => {
  if (installed()) return
  process.stderr.write('The peers are installed once, into bench/peers/node_modules (npm ci).\n')
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const child = start('npm', args, { cwd: FOLDER, stdio: ['ignore', 'ignore', 'pipe'] })
  if (child.stderr === null) throw new Error('npm has no output')
  const [output, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  if (code !== 0) throw new Error(`The peers cannot be installed:\n${output}`)
}
