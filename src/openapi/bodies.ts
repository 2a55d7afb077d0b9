/** Names and examples of bodies in the OpenAPI document, for generators of clients. */
import type { MetadataSchema, MetadataSchemas } from '../validation/metadata.ts'
import { NDJSON } from '../validation/ndjson.ts'
import { exampleOf } from './examples.ts'
import { capitalized } from './operation-names.ts'

/** @returns the first of the operator's `examples`; without any, `undefined`, because any other value may be invalid. */
const metadataExample = (own: MetadataSchema | null, example: object): unknown =>
  own === null ? example : (own.schema.examples as readonly unknown[] | undefined)?.[0]

interface Media {
  readonly schema: { readonly title?: string; readonly type?: unknown }
  readonly example?: unknown
}

type Content = Record<string, Media>

interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly requestBody?: { required: boolean; content: Content }
  readonly responses: Record<string, { content?: Content }>
}

/** The operations of the document by path and method. */
export type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

const operationsOf = (paths: Paths): Operation[] => Object.values(paths).flatMap(path => Object.values(path))

const namedContent = (content: Content, title: string, { user, app }: MetadataSchemas): Content => {
  const examples = {
    UserMetadata: metadataExample(user, { theme: 'dark' }),
    AppMetadata: metadataExample(app, { plan: 'team' }),
  }
  return Object.fromEntries(
    Object.entries(content).map(([type, media]) => [
      type,
      {
        ...media,
        schema: media.schema.type === 'object' ? { title, ...media.schema } : media.schema,
        example: media.example ?? exampleOf(media.schema as object, examples),
      },
    ]),
  )
}

/** Fastify validates an absent body as `null`. Clients leave the body out, or send an object. */
const isOptional = ({ schema }: Media): boolean => [schema.type].flat().includes('null')

const withoutNull = (content: Content): Content =>
  Object.fromEntries(
    Object.entries(content).map(([type, media]) => [
      type,
      isOptional(media) ? { ...media, schema: { ...media.schema, type: 'object' } } : media,
    ]),
  )

/**
 * Gives the bodies of requests and of successful responses a name and an example.
 * @param metadataSchemas an example of metadata must match them.
 */
export const completeBodies = (paths: Paths, metadataSchemas: MetadataSchemas): void => {
  for (const { operationId, requestBody, responses } of operationsOf(paths)) {
    const name = capitalized(operationId)
    if (requestBody !== undefined) {
      const { content } = requestBody
      // An NDJSON body may have no lines, and so be absent.
      requestBody.required = !(NDJSON in content || Object.values(content).some(isOptional))
      requestBody.content = namedContent(withoutNull(content), `${name}Request`, metadataSchemas)
    }
    for (const [status, response] of Object.entries(responses))
      if (Number(status) < 400 && response.content !== undefined)
        response.content = namedContent(response.content, `${name}Response`, metadataSchemas)
  }
}
