/**
 * The reporter of the tests (`.taprc`): a line for each test file, and each failure twice: when its file ends, and after all files.
 * So the end of a log names every failure, and a log that breaks off still has those before. `TAP=1` prints each assertion instead.
 *
 * tap renders the default export as a component of React, once: it has no state.
 */
import { inspect } from 'node:util'
import type { Base, Spawn, TestBase } from 'tap'

/** Lines printed of the details of a failure. */
const DETAIL_LINES = 40

/** Last lines printed of what a failed file wrote to its standard error. */
const STDERR_LINES = 20

/** An assertion as tap parsed it. `fullname` is the file and the titles of its nested tests, separated by ` > `. */
type Assertion = Base['lists']['fail'][number]

const print = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`

const counted = ({ counts: { total, fail, skip } }: Base): string =>
  [`${total} assertions`, fail > 0 && `${fail} failed`, skip > 0 && `${skip} skipped`]
    .filter(Boolean)
    .join(', ')

const indent = (text: string): string => text.trimEnd().replaceAll(/^(?=.)/gm, '    ')

const shorten = (text: string): string => {
  const lines = text.trimEnd().split('\n')
  const more = lines.length - DETAIL_LINES
  return more > 0
    ? [...lines.slice(0, DETAIL_LINES), `(${more} more lines are in .tap/test-results)`].join('\n')
    : text
}

/** The assertion with its difference. tap's excerpt of the source is left out: the stack names the line. */
const failure = ({ fullname, diag }: Assertion): string => {
  const { diff, stack, at, source, ...others } = diag ?? {}
  const details = [diff, Object.keys(others).length > 0 ? inspect(others, { depth: 6 }) : '', stack]
  return `not ok: ${fullname}\n${indent(shorten(details.filter(Boolean).join('\n')))}`
}

/** Why a file failed beside its assertions: it could not be loaded, was killed or exited early. */
const exit = ({ name, options: { exitCode, signal } }: Base, lastTest: string, stderr: string): string => {
  const reason = signal ? `was killed with ${signal}` : `ended with exit code ${exitCode}`
  const details = [
    `The last test that began is: ${lastTest}`,
    stderr && `Its standard error ends with:\n${stderr}`,
  ]
  return `not ok: ${name} ${reason}\n${indent(details.filter(Boolean).join('\n'))}`
}

/** Keeps what the end of `file` does not tell. Returns a function that returns the failures of the file, which ended. */
const watch = (file: Spawn): (() => string[]) => {
  let stderr = ''
  let lastTest = 'none'
  const onTest = (parser: Base['parser']): void => {
    parser.on('child', child => {
      lastTest = child.fullname
      onTest(child)
    })
  }
  onTest(file.parser)
  file.on('process', child => {
    child.stderr?.on('data', (chunk: Buffer) => {
      process.stderr.write(chunk)
      stderr = `${stderr}${chunk}`.split('\n').slice(-STDERR_LINES).join('\n')
    })
  })
  return () => {
    const failures = file.lists.fail.map(failure)
    const explained = failures.length > 0 && !file.options.signal
    return file.passing() || explained ? failures : [...failures, exit(file, lastTest, stderr)]
  }
}

export default function TestReporter({ test }: { test: TestBase }): null {
  const watched = new Map<Base, () => string[]>()
  const failures: string[] = []
  test.on('spawn', file => watched.set(file, watch(file)))
  test.on('subtestEnd', file => {
    const ofFile = watched.get(file)?.() ?? []
    print(
      [
        `${file.passing() ? 'ok' : 'not ok'} ${file.name}: ${counted(file)}, ${seconds(file.time)}`,
        ...ofFile,
      ].join('\n'),
    )
    failures.push(...ofFile)
  })
  test.on('complete', () => {
    for (const { fullname, skip } of test.lists.skip) print(`skipped: ${fullname} (${skip})`)
    if (failures.length > 0) print(['', 'Failures', ...failures].join('\n\n'))
    print(`\n${watched.size} files, ${counted(test)}, ${seconds(test.time)}`)
  })
  test.resume()
  return null
}
