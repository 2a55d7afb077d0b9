/**
 * Runs commands of the command line one after the other, as `src/cli.ts` does in a process of its own. `runCommand` (`cli.ts`) starts
 * it: loading the modules takes most of the time of a command.
 */
import { Readable } from 'node:stream'

export interface CommandRequest {
  readonly id: number
  readonly args: readonly string[]
  /** The whole environment. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly input: string | Uint8Array
}

/** What a command has left behind. */
export interface Ended {
  /** The exit code, `null` after a signal. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface CommandResponse {
  readonly id: number
  readonly ended: Ended
}

const [node = '', runner = ''] = process.argv

const enter = ({ args, env, input }: CommandRequest): void => {
  process.argv = [node, runner, ...args]
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true })
}

/** Replaces what `src/cli.ts` writes to and listens on. @returns the output so far. */
const capture = () => {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].removeAllListeners('error')
    process[name].write = (chunk: string | Uint8Array): boolean => {
      output[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
      return true
    }
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.removeAllListeners(signal)
  return output
}

const run = async (request: CommandRequest): Promise<Ended> => {
  enter(request)
  const output = capture()
  process.exitCode = 0
  // The query makes it another module, which runs from its beginning.
  await import(`../../src/cli.ts?command=${request.id}`)
  const code = Number(process.exitCode)
  process.exitCode = 0
  return { code, ...output }
}

let last: Promise<void> = Promise.resolve()

process.on('message', (request: CommandRequest) => {
  last = last.then(async () => {
    const response: CommandResponse = { id: request.id, ended: await run(request) }
    process.send?.(response)
  })
})
process.on('disconnect', () => process.exit())
