/** The notes of the user. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { ServicesOf } from '#feature/declaration'
import { userActor } from '#routes/request-context'
import { linkToNext, withHeaders } from '#routes/response-headers'
import {
  ErrorBody,
  ErrorOf,
  Id,
  IdParams,
  NextCursor,
  pageProperties,
  Strict,
  Timestamp,
} from '#routes/schemas'
import { ERRORS, type notes as feature, type Note as StoredNote } from '../../../notes.ts'

const Text = Strict({
  text: Type.String({ normalize: 'trim', minLength: 1, maxLength: 1_000, examples: ['buy hay'] }),
})
const Note = Type.Object(
  { id: Id, text: Type.String(), createdAt: Timestamp, updatedAt: Timestamp },
  { title: 'Note' },
)
const NotePage = Type.Object({ results: Type.Array(Note), nextCursor: NextCursor }, { title: 'NotePage' })
const NoteCode = Type.Object(
  { code: Type.String({ examples: ['Jx3nV0c9Q2m8tYbR5uWk1A'] }) },
  { title: 'NoteCode' },
)

const serializeNote = ({ createdAt, updatedAt, ...note }: StoredNote) => ({
  ...note,
  createdAt: new Date(createdAt).toISOString(),
  updatedAt: new Date(updatedAt).toISOString(),
})

const routes: FastifyPluginAsyncTypebox = async app => {
  const { notes } = app.services as typeof app.services & ServicesOf<[typeof feature]>

  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.get(
    '',
    {
      config: { scope: 'notes:read' },
      schema: {
        summary: 'List your notes, newest first',
        querystring: Strict(pageProperties),
        response: { 200: NotePage, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.validatedData.query
      const { results, nextCursor } = await notes.list(request.user, limit, cursor)
      linkToNext(request, reply, nextCursor)
      return { results: results.map(serializeNote), nextCursor }
    },
  )

  app.post(
    '',
    {
      config: { scope: 'notes:write', rateLimit: 'new-notes' },
      schema: {
        summary: 'Add a note',
        body: Text,
        response: {
          201: withHeaders(Note, 'Location'),
          409: ErrorOf(ERRORS.tooManyNotes),
          429: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const note = await notes.add(request.user, request.validatedData.body.text, userActor(request))
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
        response: { 200: Note, 404: ErrorOf(ERRORS.noteNotFound), 503: ErrorBody },
      },
    },
    async request => serializeNote(await notes.find(request.validatedData.params.id, request.user)),
  )

  app.put(
    '/:id',
    {
      config: { scope: 'notes:write' },
      schema: {
        summary: 'Change a note',
        params: IdParams,
        body: Text,
        response: { 200: Note, 404: ErrorOf(ERRORS.noteNotFound), 503: ErrorBody },
      },
    },
    async request => {
      const { params, body } = request.validatedData
      return serializeNote(await notes.change(params.id, request.user, body.text))
    },
  )

  app.delete(
    '/:id',
    {
      config: { scope: 'notes:write' },
      schema: {
        summary: 'Remove a note',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.noteNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      await notes.remove(request.validatedData.params.id, request.user)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/:id/codes',
    {
      config: { scope: 'notes:write' },
      schema: {
        operationId: 'shareNote',
        summary: 'Make a code with which anybody reads the note once',
        params: IdParams,
        response: { 201: NoteCode, 404: ErrorOf(ERRORS.noteNotFound), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const code = await notes.share(request.validatedData.params.id, request.user)
      return reply.code(201).send({ code })
    },
  )
}

export default routes
