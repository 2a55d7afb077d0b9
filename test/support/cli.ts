/** The command line as a separate process. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { spawnScript } from './process.ts'

/** Milliseconds until a command counts as stuck. */
const LIMIT = 180_000

/** Milliseconds until a service on the same store has noticed a command's change, on a busy machine. */
export const INVALIDATION_LIMIT = 5_000

export interface Ended {
  /** The exit code, `null` after a signal. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface CommandLine {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
  /** Its output so far. */
  stdout(): string
  stderr(): string
}

/**
 * Runs `npm run cli -- …`, without npm.
 * @param stdin `pipe` to write to the process step by step.
 */
export const runCli = (
  args: readonly string[],
  env: Record<string, string> = {},
  stdin: 'ignore' | 'pipe' = 'ignore',
): CommandLine => {
  const child = spawnScript(['src/cli.ts', ...args], env, stdin)
  // A command that reads only the first line leaves the rest.
  child.stdin?.on('error', () => undefined)
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.on('data', chunk => {
      output[name] += chunk
    })
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT)
  const ended = once(child, 'close').then(([code]) => {
    clearTimeout(timer)
    return { code, ...output }
  })
  return { process: child, ended, stdout: () => output.stdout, stderr: () => output.stderr }
}

/** Runs it with this standard input. */
export const pipeToCli = (
  input: string | Buffer,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Ended> => {
  const { process, ended } = runCli(args, env, 'pipe')
  process.stdin?.end(input)
  return ended
}
