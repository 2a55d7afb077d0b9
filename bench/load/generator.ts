/** The load generator: wrk where it is installed, since it saturates a server with less CPU, else autocannon from npm. */
import { spawnSync } from 'node:child_process'
import { autocannon } from './autocannon.ts'
import type { LoadGenerator } from './load.ts'
import { wrk } from './wrk.ts'

export const chooseGenerator = (): LoadGenerator =>
  // `wrk --version` exits with 1 although all is well: what matters is that it could be started.
  spawnSync('wrk', ['--version']).error === undefined ? wrk : autocannon
