/** Example values of JSON Schemas, for the OpenAPI document. */

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
