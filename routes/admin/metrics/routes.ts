import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { CONTENT_TYPE } from '#base/statistics/text-format'

const Text = Type.String({
  examples: [
    '# HELP gatehouse_sign_ups_total Sign-ups by outcome\n# TYPE gatehouse_sign_ups_total counter\ngatehouse_sign_ups_total{outcome="success"} 42\n',
  ],
})

const metricsRoutes: FastifyPluginAsyncTypebox = async app => {
  const { metrics } = app.services

  app.get(
    '',
    {
      config: { scope: 'metrics:read' },
      schema: {
        operationId: 'getMetrics',
        summary: 'Metrics in the text format of Prometheus; with WORKERS, of all workers',
        produces: ['text/plain'],
        response: { 200: { content: { 'text/plain': { schema: Text } } } },
      },
    },
    async (_request, reply) => {
      reply.header('cache-control', 'no-store').type(CONTENT_TYPE)
      return metrics.text()
    },
  )
}

export default metricsRoutes
