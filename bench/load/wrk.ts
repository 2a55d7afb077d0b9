import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { start, temporaryFolder } from '../processes.ts'
import { lengthOf, type Requests, rawRequest, requestAt } from '../requests.ts'
import { CONNECTIONS, type LoadGenerator, type LoadResult } from './load.ts'

const SCRIPT = join(import.meta.dirname, 'wrk.lua')

/** Seconds: slow responses count as latency, not as errors. */
const TIMEOUT = 10

interface Report extends LoadResult {
  /** Responses with status 400 and above. */
  readonly refused: number
}

const written = new WeakMap<Requests, string>()

/** A file with the bytes of each request, or of each pipelined group, after their length. Written once for all rounds. */
const fileOf = (requests: Requests): string => {
  let file = written.get(requests)
  if (file === undefined) {
    file = join(temporaryFolder(), 'requests')
    const { atOnce = 1 } = requests
    const all = Array.from({ length: Math.floor(lengthOf(requests) / atOnce) }, (_, turn) =>
      Array.from({ length: atOnce }, (_, index) =>
        rawRequest(requestAt(requests, turn * atOnce + index)),
      ).join(''),
    )
    writeFileSync(file, all.map(bytes => `${Buffer.byteLength(bytes)}\n${bytes}`).join(''))
    written.set(requests, file)
  }
  return file
}

/** One thread by default, to leave one of two cores to the server. */
export const wrk: LoadGenerator = {
  name: 'wrk',
  async run({ url, requests, seconds, cores }) {
    const threads = cores?.length ?? 1
    const args = [
      `-t${threads}`,
      `-c${CONNECTIONS * threads}`,
      `-d${seconds}s`,
      `--timeout=${TIMEOUT}s`,
      '-s',
      SCRIPT,
      url,
    ]
    const env = { ...process.env, REQUESTS: fileOf(requests), SEED: String(randomInt(2 ** 31)) }
    const child = start('wrk', args, { env, stdio: ['ignore', 'pipe', 'inherit'] }, cores)
    if (child.stdout === null) throw new Error('wrk has no output')
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')])
    const line = output.split('\n').find(line => line.startsWith('{'))
    if (line === undefined) throw new Error(`wrk failed:\n${output}`)
    const { refused, ...report } = JSON.parse(line) as Report
    const unexpected = requests.status < 400 ? refused : report.requests - refused
    return { ...report, errors: report.errors + unexpected }
  },
}
