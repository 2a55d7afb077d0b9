import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { start } from '../processes.ts'
import { CONNECTIONS, type LoadGenerator, type LoadResult } from './load.ts'

const SCRIPT = join(import.meta.dirname, 'wrk.lua')

/** One thread: on a machine with two cores, the other one is the server's. */
export const wrk: LoadGenerator = {
  name: 'wrk',
  async run({ url, requests, seconds, folder }) {
    const tokens = join(folder, 'tokens.txt')
    writeFileSync(tokens, requests.tokens.join('\n'))
    const args = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '-s', SCRIPT, url + requests.path]
    const child = start('wrk', args, {
      env: { ...process.env, TOKENS: tokens },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (child.stdout === null) throw new Error('wrk has no output')
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')])
    const report = output.split('\n').find(line => line.startsWith('{'))
    if (report === undefined) throw new Error(`wrk failed:\n${output}`)
    return JSON.parse(report) as LoadResult
  },
}
