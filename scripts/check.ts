/** Runs the parts of `npm run check` at the same time. Prints what each says once it has ended; fails if one fails. */
import { execFile } from 'node:child_process'

const PARTS = ['types', 'lint', 'imports', 'unused', 'openapi']

const run = (part: string): Promise<void> =>
  new Promise(resolve => {
    // npm is a script on Windows, which only a shell can start.
    const options = { shell: process.platform === 'win32', maxBuffer: Number.POSITIVE_INFINITY }
    execFile('npm', ['run', part], options, (error, stdout, stderr) => {
      process.stdout.write(stdout)
      process.stderr.write(stderr)
      if (error !== null) process.exitCode = 1
      resolve()
    })
  })

await Promise.all(PARTS.map(run))
