/** The OpenAPI document of a service, by operation. */
import type { FastifyInstance } from 'fastify'

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags: readonly string[]
}

export const documentOf = async (app: FastifyInstance) => (await app.inject('/openapi.json')).json()

/** By method and path. */
export const operationsOf = ({ paths }: { paths: object }): Record<string, Operation> =>
  Object.fromEntries(
    Object.entries<Record<string, Operation>>(paths as never).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation]),
    ),
  )

/** `{ 'GET /account': 'getAccount', … }` */
export const operationIds = (document: { paths: object }): Record<string, string> =>
  Object.fromEntries(
    Object.entries(operationsOf(document)).map(([route, { operationId }]) => [route, operationId]),
  )
