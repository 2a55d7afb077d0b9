/** Processors, and programs that are held to some of them: on Linux, by `taskset`. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

type Command = [program: string, args: readonly string[]]

/** The command that runs a program on nothing but these processors; on all of them where none are named. */
export const pinned = (
  cores: readonly number[] | undefined,
  program: string,
  args: readonly string[],
): Command => (cores === undefined ? [program, args] : ['taskset', ['-c', cores.join(), program, ...args]])

/** A list as Linux writes it: `0-3,8`. */
const expand = (list: string): readonly number[] =>
  list.split(',').flatMap(range => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })

/** The processors that a program can be pinned to: those of this process, or none where there is no `taskset`. */
export const coresToPin = (): readonly number[] => {
  if (process.platform !== 'linux' || spawnSync('taskset', ['--version']).error !== undefined) return []
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return list === undefined ? [] : expand(list)
}
