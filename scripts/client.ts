/** Writes client/client.ts from the OpenAPI document of the service. Run it after a change of routes or schemas. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateClient } from '../client/generate.ts'
import { openApiDocument } from './openapi-document.ts'

const document = JSON.parse(await openApiDocument())
const file = join(import.meta.dirname, '..', 'client', 'client.ts')
writeFileSync(file, generateClient(document, './runtime.ts'))
