import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { start } from '../processes.ts'
import { temporaryFolder } from '../workspace.ts'
import type { LoadGenerator, LoadResult } from './load.ts'

const PROGRAM = join(import.meta.dirname, 'autocannon-process.ts')

/** Runs in its own process, because it needs more CPU than the server. */
export const autocannon: LoadGenerator = {
  name: 'autocannon',
  async run(options) {
    const file = join(temporaryFolder(), 'load.json')
    writeFileSync(file, JSON.stringify(options))
    const child = start(process.execPath, [PROGRAM, file], { stdio: ['ignore', 'pipe', 'inherit'] })
    if (child.stdout === null) throw new Error('autocannon has no output')
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    if (code !== 0) throw new Error(`autocannon failed:\n${output}`)
    return JSON.parse(output) as LoadResult
  },
}
