/** Chooses the load generator: wrk if it is installed, because it needs less CPU to saturate a server; otherwise autocannon. */
import { spawnSync } from 'node:child_process'
import { autocannon } from './autocannon.ts'
import type { LoadGenerator } from './load.ts'
import { wrk } from './wrk.ts'

export const chooseGenerator = (): LoadGenerator =>
  // `wrk --version` always exits with 1: check only whether it starts.
  spawnSync('wrk', ['--version']).error === undefined ? wrk : autocannon
