/** The notes of the user. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { userActor } from '../../../../../routes/request-context.ts'
import { withHeaders } from '../../../../../routes/response-headers.ts'
import { ErrorBody, Id, IdParams, Strict, Timestamp } from '../../../../../routes/schemas.ts'
import { ServiceError } from '../../../../../src/errors.ts'
import type { ServicesOf } from '../../../../../src/feature.ts'
import type { notes as feature, Note as StoredNote } from '../../../notes.ts'

const Text = Strict({
  text: Type.String({ normalize: 'trim', minLength: 1, maxLength: 1_000, examples: ['buy hay'] }),
})
const Note = Type.Object(
  { id: Id, text: Type.String(), createdAt: Timestamp, updatedAt: Timestamp },
  { title: 'Note' },
)

const serializeNote = ({ createdAt, updatedAt, ...note }: StoredNote) => ({
  ...note,
  createdAt: new Date(createdAt).toISOString(),
  updatedAt: new Date(updatedAt).toISOString(),
})

const routes: FastifyPluginAsyncTypebox = async app => {
  const { notes } = app.services as typeof app.services & ServicesOf<[typeof feature]>
  const notFound = () => app.httpErrors.notFound('Note not found')

  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.get(
    '',
    {
      config: { scope: 'notes:read' },
      schema: {
        summary: 'List your notes, newest first',
        response: { 200: Type.Object({ results: Type.Array(Note) }), 503: ErrorBody },
      },
    },
    async request => ({ results: (await notes.list(request.user)).map(serializeNote) }),
  )

  app.post(
    '',
    {
      config: { scope: 'notes:write', rateLimit: 'mail' },
      schema: {
        summary: 'Add a note',
        body: Text,
        response: { 201: withHeaders(Note, 'Location'), 409: ErrorBody, 429: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const note = await notes.add(request.user, request.validatedData.body.text, userActor(request))
      if (note === 'tooManyNotes') throw app.httpErrors.conflict('You have too many notes: remove one first')
      // Removed or disabled since the gate.
      if (note === 'refused') throw new ServiceError('signInRequired')
      return reply
        .code(201)
        .header('location', `${request.routeOptions.url}/${note.id}`)
        .send(serializeNote(note))
    },
  )

  app.get(
    '/:id',
    {
      config: { scope: 'notes:read' },
      schema: {
        summary: 'Get a note',
        params: IdParams,
        response: { 200: Note, 404: ErrorBody, 503: ErrorBody },
      },
    },
    async request => {
      const note = await notes.find(request.validatedData.params.id, request.user)
      if (note === undefined) throw notFound()
      return serializeNote(note)
    },
  )

  app.put(
    '/:id',
    {
      config: { scope: 'notes:write' },
      schema: {
        summary: 'Change a note',
        params: IdParams,
        body: Text,
        response: { 200: Note, 404: ErrorBody, 503: ErrorBody },
      },
    },
    async request => {
      const { params, body } = request.validatedData
      const note = await notes.change(params.id, request.user, body.text)
      if (note === undefined) throw notFound()
      return serializeNote(note)
    },
  )

  app.delete(
    '/:id',
    {
      config: { scope: 'notes:write' },
      schema: {
        summary: 'Remove a note',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      if (!(await notes.remove(request.validatedData.params.id, request.user))) throw notFound()
      return reply.code(204).send(null)
    },
  )
}

export default routes
