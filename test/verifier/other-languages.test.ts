/** The programs of docs/verifying.md in Go and Python, beside a real service. */
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { ADMIN_KEY, build, signUp, temporaryFolder, updateUser } from '../support/build.ts'

const DOCUMENT = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'verifying.md'), 'utf8')

interface Program {
  readonly name: string
  readonly text: string
}

/** The blocks of a language that begin with how they are started. */
const programsIn = (language: string): readonly Program[] =>
  [
    ...DOCUMENT.matchAll(
      new RegExp(`\`\`\`${language}\\n((?://|#) \\S+(?: run)? (\\S+) .*\\n[\\s\\S]*?)\`\`\``, 'g'),
    ),
  ].map(([, text = '', name = '']) => ({ name, text }))

const runs = (file: string, args: readonly string[]): boolean => spawnSync(file, args).status === 0

const LANGUAGES = [
  {
    language: 'go',
    command: 'go',
    first: ['run'],
    skip: runs('go', ['version']) ? false : 'Go is not installed',
  },
  {
    language: 'python',
    skip: runs('python3', ['--version']) ? false : 'Python is not installed',
  },
]

const WITHOUT_JWT = runs('python3', ['-c', 'import jwt, cryptography']) ? false : 'PyJWT is not installed'

for (const { language, skip } of LANGUAGES)
  t.test(language, { skip }, async t => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const app = await build(t, { env: { JWT_ALGORITHM: 'EdDSA', PUBLIC_URL: url } })
    await app.listen({ port, host: '127.0.0.1' })
    t.equal((app.server.address() as AddressInfo).port, port)
    const user = await signUp(app)
    const folder = temporaryFolder(t)
    const programs = programsIn(language)
    t.equal(programs.length, 2)
    for (const { name, text } of programs) {
      const asks = name.startsWith('introspect')
      t.test(name, { skip: asks || language === 'go' ? false : WITHOUT_JWT }, async t => {
        const file = join(folder, name)
        writeFileSync(file, text)
        const isGo = language === 'go'
        // Once, because `go run` compiles each time.
        if (isGo) await promisify(execFile)('go', ['build', '-o', `${file}.program`, file])
        const [program, given] = isGo ? [`${file}.program`, []] : ['python3', [file]]
        const run = async (token: string): Promise<string | null> =>
          promisify(execFile)(program, [...given, url, ...(asks ? [ADMIN_KEY] : []), token]).then(
            ({ stdout }) => stdout.trim(),
            () => null,
          )
        t.equal(await run(user.token), user.id)
        t.equal(await run(`${user.token.slice(0, -6)}AAAAAA`), null)
        t.equal(await run('x'), null)
        const { id, token } = await signUp(app)
        await updateUser(app, id, { disabled: true })
        t.equal(await run(token), asks ? null : id, 'the user is disabled')
      })
    }
  })
