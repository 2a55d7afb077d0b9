/** Pins programs to processors, with `taskset` on Linux. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

type Command = [program: string, args: readonly string[]]

/** @returns the command that runs a program on these processors only; on all if `cores` is undefined. */
export const pinned = (
  cores: readonly number[] | undefined,
  program: string,
  args: readonly string[],
): Command => (cores === undefined ? [program, args] : ['taskset', ['-c', cores.join(), program, ...args]])

/** Expands a list of processors as Linux writes it: `0-3,8`. */
const expand = (list: string): readonly number[] =>
  list.split(',').flatMap(range => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })

/** @returns the processors that programs can be pinned to: those of this process; none without `taskset`. */
export const coresToPin = (): readonly number[] => {
  if (process.platform !== 'linux' || spawnSync('taskset', ['--version']).error !== undefined) return []
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return list === undefined ? [] : expand(list)
}
