/** The command line in separate processes. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { CommandRequest, CommandResponse, Ended } from './command-runner.ts'
import { spawnScript, UNMEASURED } from './process.ts'

/** Milliseconds until a command counts as stuck. */
const LIMIT = 180_000

/** Milliseconds until a service on the same store has noticed a command's change, on a busy machine. */
export const INVALIDATION_LIMIT = 5_000

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

interface CommandRunner {
  run(request: Omit<CommandRequest, 'id'>): Promise<Ended>
}

const startRunner = (): CommandRunner => {
  const project = join(import.meta.dirname, '..', '..')
  const child = fork(join(import.meta.dirname, 'command-runner.ts'), {
    cwd: project,
    env: { ...process.env, ...UNMEASURED },
    execArgv: ['--import', './src/preload.js'],
    serialization: 'advanced',
  })
  const waiting = new Map<number, PromiseWithResolvers<Ended>>()
  let requests = 0
  child.on('message', ({ id, ended }: CommandResponse) => {
    waiting.get(id)?.resolve(ended)
    waiting.delete(id)
    if (waiting.size === 0) child.channel?.unref()
  })
  child.on('exit', code => {
    for (const { reject } of waiting.values())
      reject(new Error(`a command has ended the process with ${code}`))
  })
  // It ends with this process.
  child.unref()
  child.channel?.unref()
  return {
    run(request) {
      requests += 1
      const ended = Promise.withResolvers<Ended>()
      waiting.set(requests, ended)
      child.channel?.ref()
      child.send({ ...request, id: requests })
      return ended.promise
    },
  }
}

let runner: CommandRunner | null = null

/**
 * Runs a command as {@link runCli} does, in one process with the other commands of this test file: a process of its own takes four
 * times as long. Each command also has a test with {@link runCli}: `test/cli/processes.test.ts`.
 * @param input the standard input.
 */
export const runCommand = (
  args: readonly string[],
  env: Record<string, string> = {},
  input: string | Buffer = '',
): Promise<Ended> => {
  runner ??= startRunner()
  return runner.run({ args, env: { ...process.env, ...UNMEASURED, ...env }, input })
}
