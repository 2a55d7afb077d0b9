/** Imports and exports of users by forms. Both are streams of the API. */
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ERRORS, errorBody, type FieldErrors, ServiceError } from '#base/errors'
import type { ConsoleContext, Html } from '#http/pages/feature-pages'
import { ARRIVING } from '#http/pages/layout'
import { NDJSON } from '#http/validation/ndjson'
import { FormText, Strict } from '#routes/schemas'
import { ERRORS as OWN_ERRORS } from '../definitions.ts'
import type { Values } from '../render.ts'
import {
  EXPORT,
  exportBody,
  type FailedLine,
  IMPORT,
  importBody,
  MAX_FILE_MEGABYTES,
  progressBody,
  progressEnd,
  progressLine,
  progressStart,
} from '../transfer-pages.ts'
import { refusedBy, type Shell } from './shell.ts'

const MAX_FILE = MAX_FILE_MEGABYTES * 1_048_576

/** Bytes of the other fields and of what is around them. */
const AROUND = 65_536

/** Failed lines that the page shows. */
const MAX_FAILURES = 100

/** Milliseconds between two lines of progress. */
const PACE = 500

const Proof = { adminKey: Type.Optional(FormText), code: Type.Optional(FormText) }

/** A form with a file (RFC 7578). @returns its fields; files are blobs. @throws {ServiceError} `malformedForm`, `duplicateKey` */
const parseUpload = async ({ headers }: FastifyRequest, body: Buffer): Promise<Record<string, unknown>> => {
  const response = new Response(new Uint8Array(body), {
    headers: { 'content-type': headers['content-type'] ?? '' },
  })
  const form = await response.formData().catch(() => {
    throw new ServiceError('malformedForm')
  })
  const fields = [...form]
  const parsed: Record<string, unknown> = Object.fromEntries(fields)
  if (Object.keys(parsed).length < fields.length) throw new ServiceError('duplicateKey')
  return parsed
}

const NEWLINE = 0x0a

/** Blank lines included, of which imports report nothing. By index: iterators and `indexOf` take seconds for 16 million lines. */
const countLines = (content: Buffer): number => {
  let lines = content.length > 0 && content.at(-1) !== NEWLINE ? 1 : 0
  for (let at = 0; at < content.length; at += 1) if (content[at] === NEWLINE) lines += 1
  return lines
}

interface ResultLine {
  readonly line?: number
  readonly status: 'created' | 'exists' | 'failed' | 'finished' | 'stopped'
  readonly errors?: FieldErrors
}

const BROKEN_OFF = errorBody(ERRORS.internalError.field, ERRORS.internalError.message).errors

/** The progress of an import as the API reports it, as HTML. */
async function* progressOf(
  request: FastifyRequest,
  context: ConsoleContext,
  results: Readable,
  lines: number,
): AsyncGenerator<Html> {
  const counts = { created: 0, exists: 0, failed: 0 }
  const failures: FailedLine[] = []
  const progress = () => ({ ...counts, lines, read: counts.created + counts.exists + counts.failed })
  let errors: FieldErrors | null = BROKEN_OFF
  let shownAt = Number.NEGATIVE_INFINITY
  yield progressStart(context)
  try {
    for await (const text of createInterface({ input: results })) {
      const { line = 0, status, errors: found = {} } = JSON.parse(text) as ResultLine
      if (status === 'finished') errors = null
      else if (status === 'stopped') errors = found
      else counts[status] += 1
      if (status === 'failed' && failures.length < MAX_FAILURES) failures.push({ line, errors: found })
      if (performance.now() - shownAt < PACE) continue
      shownAt = performance.now()
      yield progressLine(context, progress())
    }
  } catch (error) {
    request.logFailure(error)
  }
  yield progressLine(context, progress())
  yield progressEnd(context, { progress: progress(), failures, errors })
}

const addImport = (app: FastifyInstance, shell: Shell): void => {
  const allowed = shell.needsScope('users:import')
  const sendForm = (request: FastifyRequest, reply: FastifyReply, errors: FieldErrors) =>
    shell.send(request, reply, {
      title: ({ say }) => say(IMPORT),
      body: context => importBody(context, { proof: shell.proofOf(request), errors }),
      current: 'users',
      isForm: true,
      errors,
    })
  app.addContentTypeParser(
    'multipart/form-data',
    { parseAs: 'buffer', bodyLimit: MAX_FILE + AROUND },
    parseUpload,
  )
  app.get('/users/import', { onRequest: allowed, schema: { hide: true } }, (request, reply) =>
    sendForm(request, reply, {}),
  )
  const body = Strict({ ...Proof, file: Type.Optional(Type.Unsafe<Blob>({})) })
  const schema = { hide: true, body }
  app.post(
    '/users/import',
    { onRequest: allowed, schema, config: { rateLimit: 'console' } },
    async (request, reply) => {
      const { file, ...proof } = request.validatedData.body as Values & { readonly file?: Blob }
      const unproved = await shell.prove(request, reply, proof)
      if (unproved !== null) return sendForm(request, reply.relay(unproved), unproved.errors)
      if (!(file instanceof Blob) || file.size === 0 || file.size > MAX_FILE) {
        const refused = refusedBy(OWN_ERRORS.fileRequired)
        return sendForm(request, reply.relay(refused), refused.errors)
      }
      const content = Buffer.from(await file.arrayBuffer())
      const response = await shell.stream(request, reply, {
        method: 'POST',
        path: '/admin/users/import',
        content: { type: NDJSON, bytes: content },
      })
      if (response.stream === null) return shell.fail(request, reply, { ...response, body: null })
      const { stream } = response
      return shell.send(request, reply, {
        title: ({ say }) => say(IMPORT),
        body: context => progressBody(context, ARRIVING),
        arriving: context => progressOf(request, context, stream, countLines(content)),
        current: 'users',
        isForm: true,
      })
    },
  )
}

const addExport = (app: FastifyInstance, shell: Shell): void => {
  const onRequest = shell.needsScope('users:export')
  const sendForm = async (request: FastifyRequest, reply: FastifyReply, errors: FieldErrors) => {
    const users = shell.may(request, 'users:read')
      ? await shell.read(request, '/admin/users?limit=1&count=approximate')
      : null
    const approximateUsers: number | null = users?.body?.approximateTotal ?? null
    return shell.send(request, reply, {
      title: ({ say }) => say(EXPORT),
      body: context => exportBody(context, { proof: shell.proofOf(request), errors, approximateUsers }),
      current: 'users',
      isForm: true,
      errors,
    })
  }
  app.get('/users/export', { onRequest, schema: { hide: true } }, (request, reply) =>
    sendForm(request, reply, {}),
  )
  const body = Strict({ ...Proof, passwordHashes: Type.Optional(FormText) })
  app.post(
    '/users/export',
    { onRequest, schema: { hide: true, body }, config: { rateLimit: 'console' } },
    async (request, reply) => {
      const { passwordHashes, ...proof } = request.validatedData.body as Values
      const unproved = await shell.prove(request, reply, proof)
      if (unproved !== null) return sendForm(request, reply.relay(unproved), unproved.errors)
      const response = await shell.stream(request, reply, {
        method: 'GET',
        path: `/admin/users/export?passwordHashes=${passwordHashes !== undefined}`,
      })
      if (response.stream === null) return shell.fail(request, reply, { ...response, body: null })
      for (const name of ['content-type', 'content-disposition', 'cache-control'])
        reply.header(name, response.headers[name])
      return reply.send(response.stream)
    },
  )
}

export const addTransfers = (app: FastifyInstance, shell: Shell): void => {
  // In a scope of its own: no other form may have a file.
  app.register(async (scoped: FastifyInstance) => addImport(scoped, shell))
  addExport(app, shell)
}
