#!/usr/bin/env node
/** Writes a client for a running service, with the routes that a team added to it. */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { generateClient } from './generate.ts'

const USAGE = `Usage: gatehouse-client <URL or file of openapi.json> [--output <file>] [--runtime <module>]

Writes a client in TypeScript, to standard output without --output.
  --runtime   what the client imports, gatehouse/client/runtime by default
`

const read = async (source: string): Promise<string> => {
  if (!/^https?:/.test(source)) return readFile(source, 'utf8')
  const response = await fetch(source)
  if (!response.ok) throw new Error(`${source} responded with ${response.status}`)
  return response.text()
}

const run = async (): Promise<void> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      output: { type: 'string' },
      runtime: { type: 'string', default: 'gatehouse/client/runtime' },
      help: { type: 'boolean' },
    },
  })
  const [source, ...others] = positionals
  if (values.help === true) {
    process.stdout.write(USAGE)
    return
  }
  if (source === undefined || others.length > 0) throw new TypeError(`Name one document\n\n${USAGE}`)
  const client = generateClient(JSON.parse(await read(source)), values.runtime)
  if (values.output === undefined) process.stdout.write(client)
  else await writeFile(values.output, client)
}

run().catch(error => {
  process.stderr.write(`${error.message}\n`)
  // 2: the command line is wrong.
  process.exitCode = error instanceof TypeError ? 2 : 1
})
