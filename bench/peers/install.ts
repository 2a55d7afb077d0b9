/** Installs the packages of the peers on demand. They are not part of the project, so `npm ci` does not install them. */
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { start } from '../processes.ts'
import { progress } from '../progress.ts'

const FOLDER = import.meta.dirname

const written = (file: string): number =>
  statSync(join(FOLDER, file), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** npm writes its copy of the lockfile last, so an interrupted or outdated installation does not count. */
const installed = (): boolean => written('node_modules/.package-lock.json') > written('package-lock.json')

/** @throws {Error} with npm's output. */
export const installPeers = async (): Promise<void> => {
  if (installed()) return
  progress('Installing the peers into bench/peers/node_modules (npm ci), once.')
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const child = start('npm', args, { cwd: FOLDER, stdio: ['ignore', 'ignore', 'pipe'] })
  if (child.stderr === null) throw new Error('npm has no output')
  const [output, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  if (code !== 0) throw new Error(`The peers cannot be installed:\n${output}`)
}
