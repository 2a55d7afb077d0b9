/** Checks the OpenAPI document with the recommended rules of Redocly and Spectral. Every finding fails, warnings too. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import spectral from '@stoplight/spectral-core'
import rulesets from '@stoplight/spectral-rulesets'
import { openApiDocument } from './openapi-document.ts'

interface Finding {
  readonly rule: string
  /** A JSON pointer into the document. */
  readonly at: string
  readonly message: string
}

interface RedoclyReport {
  readonly problems: readonly {
    readonly ruleId: string
    readonly message: string
    readonly location: readonly { readonly pointer?: string }[]
  }[]
}

/** @param file of the document. */
const redoclyFindings = (file: string): Finding[] => {
  const cli = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'))
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [cli, 'lint', '--extends=recommended', '--format=json', '--max-problems=1000', file],
    {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
      // Without these it reports its use to its makers, and asks the registry for a newer version.
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  )
  if (!stdout.startsWith('{')) throw new Error(`Redocly failed: ${stderr}`)
  const { problems } = JSON.parse(stdout) as RedoclyReport
  return problems.map(({ ruleId, message, location }) => ({
    rule: `redocly/${ruleId}`,
    at: (location[0]?.pointer ?? '').replace(/^#/, ''),
    message,
  }))
}

const spectralFindings = async (document: string): Promise<Finding[]> => {
  const linter = new spectral.Spectral()
  linter.setRuleset({ extends: [[rulesets.oas as never, 'recommended']] })
  const results = await linter.run(JSON.parse(document))
  return results.map(({ code, message, path }) => ({
    rule: `spectral/${code}`,
    at: path.map(key => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''),
    message,
  }))
}

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openapi-'))
try {
  const document = await openApiDocument()
  const file = join(folder, 'openapi.json')
  writeFileSync(file, document)
  const findings = [...redoclyFindings(file), ...(await spectralFindings(document))]
  const failures = findings.map(({ rule, at, message }) => `${rule} at ${at}: ${message}`)
  process.stdout.write([`openapi: ${failures.length} findings`, ...failures, ''].join('\n'))
  process.exitCode = failures.length === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true })
}
