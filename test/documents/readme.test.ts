/** The `console` blocks of the documents, word for word: their commands run in a shell and print what the documents say. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/build.ts'
import { startServer } from '../support/process.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

/** In the order in which they are read: the reference continues the quickstart. */
const DOCUMENTS = ['README.md', 'docs/api.md'].map(file => readFileSync(join(PROJECT, file), 'utf8'))

interface Step {
  readonly command: string
  readonly output: string
}

const steps: Step[] = [...DOCUMENTS.join('\n').matchAll(/```console\n([\s\S]*?)```/g)].flatMap(
  ([, block = '']) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map(text => {
        const [command = '', ...output] = text.split('\n')
        return { command, output: output.join('\n').trim() }
      }),
)

/** What differs from run to run. */
const withoutChance = (text: string): string =>
  text
    .replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '<token>')
    .replaceAll(/gate_pat_\w{49}/g, '<key>')
    .replaceAll(/gate_pat_\w{4}/g, '<prefix>')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>')
    .trim()

/** The output with an `…` where the document has one. */
const abridged = (output: string, documented: string): string => {
  const parts = documented.split('…')
  const pattern = new RegExp(`^${parts.map(part => RegExp.escape(part)).join('[^]+')}$`)
  return pattern.test(output) ? documented : output
}

const SEPARATOR = '--- next ---'

t.test('the commands of the quickstart and of the API reference print what these say (§7.1)', async t => {
  const key = /ADMIN_KEY=(\S+) npm start/.exec(DOCUMENTS.join('\n'))?.[1] ?? ''
  const server = await startServer(t, { env: { ADMIN_KEY: key, NODE_ENV: 'development' } })
  const script = steps
    .map(
      ({ command }) =>
        `${command.replaceAll('localhost:3000', `127.0.0.1:${server.port}`)}\necho; echo '${SEPARATOR}'`,
    )
    .join('\n')
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd: temporaryFolder(t), encoding: 'utf8' })
  t.equal(stderr, '')
  const outputs = stdout.split(SEPARATOR).map(withoutChance)
  t.ok(steps.length >= 21)
  for (const [index, { command, output }] of steps.entries())
    t.equal(abridged(outputs[index] ?? '', output), output, command)
  t.equal(await server.stop('SIGTERM'), 0)
})
