/**
 * The generator: the committed client is that of the live document, and other documents become clients too (docs/design.md, "OpenAPI and
 * client").
 */
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { FEATURES } from '#features/own'
import { generateClient, type OpenApiDocument } from '../../client/generate.ts'
import { build, temporaryFolder } from '../support/build.ts'
import { listen } from '../support/clients.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const RUNTIME = 'gatehouse/client/runtime'

const run = (...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, args, {
    cwd: PROJECT,
    env: { ...process.env, _TAPJS_PROCESSINFO_COVERAGE_: '0' },
  }).then(
    output => ({ code: 0, ...output }),
    error => error,
  )

const app = await build(t, { env: MAILED_SIGN_INS })
const document: OpenApiDocument = (await app.inject('/openapi.json')).json()

/** The client of a fork with features has their routes once it has run `npm run client`. */
const skip = FEATURES.length > 0 && 'src/features/own.ts has features'

t.test(
  'client/client.ts is generated from the live document: `npm run client` updates it',
  { skip },
  async t => {
    const committed = readFileSync(join(PROJECT, 'client/client.ts'), 'utf8')
    t.equal(committed, generateClient(document, './runtime.ts'))
  },
)

t.test('every operation has a method with its id', { skip }, async t => {
  const client = readFileSync(join(PROJECT, 'client/client.ts'), 'utf8')
  for (const [path, operations] of Object.entries(document.paths))
    for (const [method, { operationId = '' }] of Object.entries(operations)) {
      t.equal(client.includes(`\n    ${operationId}: (`), method !== 'head', `${method} ${path}`)
    }
  for (const name of ['streamEvents', 'streamOwnEvents']) t.match(client, `\n    ${name}: (`)
})

t.test('gatehouse-client writes the client of a running service', async t => {
  const url = `${await listen(app)}/openapi.json`
  const expected = generateClient(document, RUNTIME)
  const printed = await run('client/bin.ts', url)
  t.match(printed, { code: 0, stderr: '' })
  t.equal(printed.stdout, expected)

  const folder = temporaryFolder(t)
  const [input, output] = [join(folder, 'openapi.json'), join(folder, 'accounts.ts')]
  writeFileSync(input, JSON.stringify(document))
  t.match(await run('client/bin.ts', input, '--output', output), { code: 0, stdout: '' })
  t.equal(readFileSync(output, 'utf8'), expected)

  t.match(await run('client/bin.ts', '--help'), { code: 0, stdout: /^Usage: gatehouse-client/ })
  for (const wrong of [[], [url, url], [url, '--unknown']])
    t.match(await run('client/bin.ts', ...wrong), { code: 2 }, wrong.join(' '))
  t.match(await run('client/bin.ts', `${url}x`), { code: 1, stderr: /responded with 404/ })
  t.match(await run('client/bin.ts', join(folder, 'absent')), { code: 1, stderr: /no such file/ })
})

/** Forms that the service itself does not have, but routes of teams may. */
const OTHER: OpenApiDocument = {
  openapi: '3.1.0',
  components: {
    schemas: {
      Note: {
        type: 'object',
        description: 'A note */ of a user',
        required: ['id', 'kind', 'parts'],
        properties: {
          id: { type: 'string', description: 'first line\nsecond line' },
          kind: { const: "it's" },
          parts: { type: 'array', items: { type: ['string', 'null'] } },
          'two-words': { anyOf: [{ type: 'integer' }, { type: 'null' }] },
          parent: { $ref: '#/components/schemas/Note' },
          labels: { type: 'object', additionalProperties: { type: 'number' } },
          place: { allOf: [{ type: 'object', properties: { x: { type: 'number' } } }, { type: 'object' }] },
          deep: { $ref: '#/components/schemas/Note/$defs/deep' },
        },
      },
      'A title with blanks': { type: 'string', enum: ['a', 'b'] },
    },
  },
  paths: {
    '/notes/{id}/parts/{part-id}': {
      patch: {
        operationId: 'patchPart',
        parameters: [
          { name: 'id', in: 'path', required: true },
          { name: 'part-id', in: 'path', required: true },
          {
            name: 'mode',
            in: 'query',
            required: true,
            schema: { $ref: '#/components/schemas/A title with blanks' },
          },
        ],
        requestBody: {
          content: {
            'application/json': { schema: { type: 'object', properties: { text: { type: 'string' } } } },
          },
        },
        responses: {
          200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Note' } } } },
        },
      },
    },
    '/notes': {
      get: {
        operationId: 'notes',
        parameters: [
          { name: 'cursor', in: 'query', schema: { type: 'string' } },
          { name: 'kind', in: 'query', schema: { type: 'string' } },
        ],
        responses: {
          200: {
            content: {
              'text/event-stream': { schema: { type: 'string' } },
              'application/json': {
                schema: {
                  type: 'object',
                  required: ['results', 'nextCursor'],
                  properties: {
                    results: { type: 'array', items: { $ref: '#/components/schemas/Note' } },
                    nextCursor: { type: ['string', 'null'] },
                  },
                },
              },
            },
          },
        },
      },
    },
    '/files': {
      post: {
        requestBody: { required: true, content: { 'multipart/form-data': {} } },
        responses: { 204: {} },
      },
    },
  },
}

const USE = `
import { type ATitleWithBlanks, createClient, type Note } from './other.ts'

const client = createClient({ baseUrl: 'https://example.com' })
const mode: ATitleWithBlanks = 'a'
export const note: Note = await client.patchPart('1', '2', { mode }, { text: 'a' })
export const kind: "it's" = note.kind
export const word: number | null | undefined = note['two-words']
export const parts: (string | null)[] = note.parts
export const label: number | undefined = note.labels?.['a']
export const x: number | undefined = note.place?.x
for await (const { event, cursor } of client.streamNotes({ kind: 'a' }, { silence: 1_000 })) {
  const streamed: [Note, string] = [event, cursor]
  console.log(streamed)
}
// @ts-expect-error The query is required.
client.patchPart('1', '2')
// @ts-expect-error There is no such mode.
client.patchPart('1', '2', { mode: 'c' })
// @ts-expect-error The client has no uploads.
client.createFile()
`

const RUNTIME_FILES = ['runtime.ts', 'event-stream.ts']

const copyClient = (folder: string, ...names: string[]): void => {
  for (const name of names) cpSync(join(PROJECT, 'client', name), join(folder, name))
}

/** The errors of a strict compiler for browsers, in a folder with a copy of the client. */
const compile = async (t: Test, files: Record<string, string>): Promise<string> => {
  const folder = temporaryFolder(t)
  copyClient(folder, 'client.ts', ...RUNTIME_FILES)
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2022', 'dom'],
    module: 'esnext',
    moduleResolution: 'bundler',
    types: [],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    noUnusedLocals: true,
    verbatimModuleSyntax: true,
    erasableSyntaxOnly: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    paths: { 'gatehouse/client': ['./client.ts'] },
  }
  files['tsconfig.json'] = JSON.stringify({ compilerOptions, include: ['*.ts'] })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const { stdout } = await run('node_modules/typescript/bin/tsc', '-p', folder)
  return stdout
}

const DOCUMENTS = ['README.md', 'client/README.md'].map(name => readFileSync(join(PROJECT, name), 'utf8'))

/** The code blocks of the documents that import the client. */
const EXAMPLES = [
  ...DOCUMENTS.join('\n').matchAll(/```ts\n(import .* 'gatehouse\/client'\n[\s\S]*?)```/g),
].map(([, text = ''], index) => [`example-${index}.ts`, text])

t.test('clients of other documents, and the examples of README.md, compile for browsers', async t => {
  const other = generateClient(OTHER, './runtime.ts')
  t.match(other, '// Without POST /files.')
  t.ok(EXAMPLES.length >= 7)
  const errors = await compile(t, { ...Object.fromEntries(EXAMPLES), 'other.ts': other, 'use.ts': USE })
  t.equal(errors, '')
})

t.test('paths become text, not code', async t => {
  const operation = { responses: { 204: {} } }
  const upload = { requestBody: { content: { 'multipart/form-data': {} } }, ...operation }
  const hostile = {
    openapi: '3.1.0',
    paths: {
      "/a`+'$x'+`\\/{id}": { get: { ...operation, operationId: 'one' } },
      "/a`+'$x'+`\\": { get: { ...operation, operationId: 'two' } },
      '/files\nglobalThis.x()\u2028globalThis.x()': { post: upload },
    },
  }
  const source = generateClient(hostile, './runtime.ts')
  t.notMatch(source, /^globalThis/m)
  const folder = temporaryFolder(t)
  copyClient(folder, ...RUNTIME_FILES)
  writeFileSync(join(folder, 'client.ts'), source)
  const { createClient } = await import(join(folder, 'client.ts'))
  const paths: string[] = []
  const client = createClient({
    baseUrl: '',
    fetch: async (url: string) => {
      paths.push(url)
      return new Response(null, { status: 204 })
    },
  })
  await client.one('1')
  await client.two()
  t.same(paths, ["/a`+'$x'+`\\/1", "/a`+'$x'+`\\"])
})

t.test('names that are not free are errors', async t => {
  const withSchemas = (...names: string[]) => ({
    openapi: '3.1.0',
    paths: {},
    components: { schemas: Object.fromEntries(names.map(name => [name, {}])) },
  })
  t.throws(() => generateClient(withSchemas('ServiceError'), RUNTIME), /ServiceError is a name of the client/)
  t.throws(() => generateClient(withSchemas('A B', 'AB'), RUNTIME), /two schemas with the name AB/)
})
