import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Server, startServer } from '../processes.ts'
import { temporaryFolder } from '../workspace.ts'
import { installPeers } from './install.ts'

export interface Peer {
  start(): Promise<Server>
  /** Values of the `Authorization: Bearer` field, one for each user, once it has started. */
  tokens(): readonly string[]
}

/** better-auth on an SQLite file with so many users. */
export const betterAuthPeer = async (users: number): Promise<Peer> => {
  await installPeers()
  const folder = temporaryFolder()
  const tokensFile = join(folder, 'tokens')
  const env = { DATABASE: join(folder, 'peer.db'), USERS: String(users), TOKENS: tokensFile }
  return {
    start: () => startServer('bench/peers/better-auth.js', env),
    tokens: () => readFileSync(tokensFile, 'utf8').split('\n'),
  }
}
