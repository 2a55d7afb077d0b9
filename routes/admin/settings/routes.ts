import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { NullableText, withExample } from '#routes/schemas'

const Setting = Type.Object(
  {
    name: Type.String({ examples: ['SESSION_LIFETIME'] }),
    feature: Type.Unsafe<string | null>({
      ...NullableText,
      description: 'The feature that declares it; `null` for the core',
      examples: [null],
    }),
    value: Type.Unsafe<string | null>({
      ...withExample(NullableText, '30d'),
      description:
        'What applies; of URLs with credentials the harmless part; `null` for what may be a secret',
    }),
    default: withExample(NullableText, '30d'),
    set: Type.Boolean({ description: 'Whether the environment has it, also for secrets' }),
    description: Type.String({ examples: ['a session ends this long after sign-in'] }),
  },
  { title: 'Setting' },
)

const SettingList = Type.Object({ results: Type.Array(Setting) }, { title: 'SettingList' })

const settingsRoutes: FastifyPluginAsyncTypebox = async app => {
  const results = app.config.settings.map(({ isSet, ...setting }) => ({ ...setting, set: isSet }))
  app.addHook('preSerialization', noStore)

  app.get(
    '',
    {
      config: { scope: 'settings:read' },
      schema: {
        operationId: 'listSettings',
        summary: 'List every setting of the responding process, without secrets',
        response: { 200: SettingList },
      },
    },
    async () => ({ results }),
  )
}

export default settingsRoutes
