/** Starts the peers, whose packages are installed on demand: they are not part of the project, so `npm ci` does not install them. */
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { progress, type Server, start, startServer, temporaryFolder } from '../processes.ts'

const FOLDER = import.meta.dirname

const written = (file: string): number =>
  statSync(join(FOLDER, file), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** @throws {Error} with npm's output. */
const install = async (): Promise<void> => {
  // npm writes its copy of the lockfile last, so an interrupted or outdated installation does not count.
  if (written('node_modules/.package-lock.json') > written('package-lock.json')) return
  progress('Installing the peers into bench/peers/node_modules (npm ci), once.')
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const child = start('npm', args, { cwd: FOLDER, stdio: ['ignore', 'ignore', 'pipe'] })
  if (child.stderr === null) throw new Error('npm has no output')
  const [output, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  if (code !== 0) throw new Error(`The peers cannot be installed:\n${output}`)
}

export interface Peer {
  start(): Promise<Server>
  /** Values of the `Authorization: Bearer` field, one for each user, once it has started. */
  tokens(): readonly string[]
}

/** better-auth on an SQLite file with so many users. */
export const betterAuthPeer = async (users: number): Promise<Peer> => {
  await install()
  const folder = temporaryFolder()
  const tokensFile = join(folder, 'tokens')
  const env = { DATABASE: join(folder, 'peer.db'), USERS: String(users), TOKENS: tokensFile }
  return {
    start: () => startServer('bench/peers/better-auth.js', env),
    tokens: () => readFileSync(tokensFile, 'utf8').split('\n'),
  }
}
