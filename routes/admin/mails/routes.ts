import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { USER_FIELDS } from '#core/users/fields'
import { Email, Strict } from '#routes/schemas'

const TestMail = Type.Object(
  { subject: Type.String({ examples: ['Confirm your e-mail address'] }) },
  { title: 'TestMail' },
)

const mails: FastifyPluginAsyncTypebox = async app => {
  const { testMails } = app.services
  const Body = Strict({
    email: Email,
    kind: Type.Unsafe<string>({
      type: 'string',
      enum: testMails.kinds,
      default: 'verification',
      description: 'What the mail is about',
    }),
    locale: Type.Optional(Type.Unsafe<string | null>(USER_FIELDS.locale.schema)),
  })

  app.post(
    '/test',
    {
      config: { scope: 'mails:test' },
      schema: {
        operationId: 'sendTestMail',
        summary: 'Send a mail with examples at once, and tell why the mail server refuses it',
        body: Body,
        response: { 200: TestMail },
      },
    },
    async request => {
      const { email, kind, locale = null } = request.validatedData.body
      return { subject: await testMails.send(kind, { email, locale }) }
    },
  )
}

export default mails
