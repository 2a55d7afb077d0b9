/** Names and examples of bodies in the OpenAPI document, for generators of clients. */
import type { MetadataSchema, MetadataSchemas } from '../validation/metadata.ts'
import { NDJSON } from '../validation/ndjson.ts'
import { capitalized } from './operation-names.ts'

interface Schema {
  readonly title?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly examples?: readonly unknown[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
}

/** The example of text without `examples` and format. A schema of the core must not need it (a test). */
export const PLACEHOLDER = 'text'

const OF_FORMAT: Readonly<Record<string, string>> = {
  uuid: '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70',
  'date-time': '2026-11-02T09:30:00.000Z',
  date: '2026-11-02',
  time: '09:30:00Z',
  email: 'ann@example.com',
  uri: 'https://example.com/',
}

/** @param named the examples of schemas with these titles; `undefined`: leave the property out where it is optional. */
type Named = Readonly<Record<string, unknown>>

const exampleOfObject = ({ properties = {}, required = [] }: Schema, named: Named): object => {
  const examples = Object.entries(properties).map(([name, schema]) => {
    const example = exampleOf(schema, named)
    return [name, example === undefined && required.includes(name) ? {} : example] as const
  })
  return Object.fromEntries(examples.filter(([, example]) => example !== undefined))
}

const exampleOfType = (schema: Schema, named: Named): unknown => {
  const { minimum = 1, format = '', items = {} } = schema
  switch ([schema.type].flat()[0]) {
    case 'object':
      return exampleOfObject(schema, named)
    case 'array':
      return [exampleOf(items, named)]
    case 'boolean':
      return false
    case 'integer':
    case 'number':
      return minimum
    case 'null':
      return null
    default:
      return OF_FORMAT[format] ?? PLACEHOLDER
  }
}

/**
 * The first of `examples`; otherwise composed of the examples of the properties, and of a value for each type and format.
 * @returns `undefined` for an empty list of `examples`, which leaves an optional property out.
 */
export const exampleOf = (schema: Schema, named: Named = {}): unknown => {
  const { title = '', examples, enum: [first] = [], allOf = [], anyOf = [] } = schema
  if (title in named) return named[title]
  if (examples !== undefined) return examples[0]
  if (schema.const !== undefined) return schema.const
  if (first !== undefined) return first
  const [part] = [...allOf, ...anyOf]
  return part === undefined ? exampleOfType(schema, named) : exampleOf(part, named)
}

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
