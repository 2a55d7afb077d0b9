/** Writes a client in TypeScript from an OpenAPI document: an interface for each schema, a method for each operation. */
import type { Transport } from './runtime.ts'

interface Schema {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: Schema
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>

interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
  readonly security?: readonly Readonly<Record<string, unknown>>[]
}

export interface OpenApiDocument {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

const JSON_TYPE = 'application/json'
const NDJSON = 'application/x-ndjson'
const EVENT_STREAM = 'text/event-stream'

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** Operations after which the token is no longer valid. */
const ENDS_SESSION = new Set(['signOut', 'deleteAccount'])

/** The schema of a response that opens a session. */
const SIGNED_IN = '#/components/schemas/SignedIn'

const RUNTIME_VALUES = ['adminTransport', 'segment', 'userTransport']
const RUNTIME_TYPES = [
  'AdminClientOptions',
  'Call',
  'CallOptions',
  'ClientOptions',
  'ConditionalCallOptions',
  'Pages',
  'StreamedEvent',
  'StreamOptions',
]
const PUBLIC_VALUES = ['isServiceError', 'memoryTokens', 'NetworkError', 'ServiceError']
const PUBLIC_TYPES = [...RUNTIME_TYPES, 'TokenStorage']

const RESERVED = new Set([...RUNTIME_VALUES, ...PUBLIC_VALUES, ...PUBLIC_TYPES, 'AdminClient', 'Client'])

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** A name for types or methods, from a title or an id. */
const identifier = (text: string): string =>
  text.replace(/[^\w$]+(.)?/g, (_, next = '') => next.toUpperCase()).replace(/^(?=\d)/, '_')

const typeName = (text: string): string => capitalized(identifier(text))

const quoted = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))

const literal = (value: unknown): string =>
  typeof value === 'string'
    ? `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
    : JSON.stringify(value)

const comment = (text: string | undefined): string => {
  if (text === undefined || text === '') return ''
  const lines = text.replaceAll('*/', '*\\/').split('\n')
  if (lines.length === 1) return `/** ${lines[0]} */\n`
  return `/**\n${lines.map(line => ` * ${line}`.trimEnd()).join('\n')}\n */\n`
}

const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ')

const WIDTH = 90

/** The alternatives, on as few lines as they fit. */
const union = (types: readonly string[]): string => {
  const distinct = [...new Set(types)]
  const line = distinct.join(' | ')
  if (line.length < WIDTH || distinct.length === 1) return line
  const lines: string[] = []
  for (const type of distinct) {
    const longer = `${lines.at(-1) ?? ''} | ${type}`
    if (longer.length > WIDTH || lines.length === 0) lines.push(`| ${type}`)
    else lines[lines.length - 1] = longer
  }
  return `\n${indented(lines.join('\n'))}`
}

const arrayOf = (item: string): string => (/^[\w$.]+$/.test(item) ? `${item}[]` : `Array<${item}>`)

const objectOf = (properties: readonly string[]): string => {
  if (properties.length === 0) return 'Record<string, unknown>'
  const line = `{ ${properties.join('; ')} }`
  return line.length < WIDTH && !line.includes('\n') ? line : `{\n${indented(properties.join('\n'))}\n}`
}

/** Fewer properties than these are no reason for an interface to extend another one. */
const EXTENDED = 4

/** The declarations that operations need. A type of several lines is written once. */
class Declarations {
  readonly #schemas = new Map<string, Schema>()
  /** The types of several lines that have been written, with expressions for them. */
  readonly #written = new Map<string, string>()

  /** @throws {Error} for a name that is not free. */
  add(name: string, schema: Schema): string {
    if (RESERVED.has(name)) throw new Error(`${name} is a name of the client: give the schema another title`)
    if (this.#schemas.has(name)) throw new Error(`The document has two schemas with the name ${name}`)
    this.#schemas.set(name, schema)
    return name
  }

  /** The type of a schema. An object without a name gets this one. */
  named(schema: Schema, name: string): string {
    return schema.properties === undefined || schema.$ref !== undefined
      ? this.typeOf(schema)
      : this.add(name, schema)
  }

  /** The type of a schema's values. What TypeScript cannot express is wider, at worst `unknown`. */
  typeOf(schema: Schema): string {
    const text = this.#textOf(schema)
    return this.#written.get(text) ?? text
  }

  #textOf(schema: Schema): string {
    const { $ref, enum: values, anyOf, oneOf, allOf } = schema
    if ($ref !== undefined) {
      const [, name] = /^#\/components\/schemas\/([^/]+)$/.exec($ref) ?? []
      return name === undefined ? 'unknown' : typeName(name)
    }
    if ('const' in schema) return literal(schema.const)
    if (values !== undefined) return union(values.map(literal))
    const alternatives = anyOf ?? oneOf
    if (alternatives !== undefined) return union(alternatives.map(each => this.typeOf(each)))
    if (allOf !== undefined) return allOf.map(each => `(${this.typeOf(each)})`).join(' & ')
    const types = [schema.type ?? (schema.properties === undefined ? 'unknown' : 'object')].flat()
    return union(types.map(type => this.#textOfType(type, schema)))
  }

  #textOfType(type: string, schema: Schema): string {
    const { items } = schema
    if (type === 'object') return objectOf(this.#propertiesOf(schema))
    if (type === 'array') return arrayOf(typeof items === 'object' ? this.typeOf(items) : 'unknown')
    if (type === 'integer') return 'number'
    return ['string', 'number', 'boolean', 'null'].includes(type) ? type : 'unknown'
  }

  #propertiesOf({ properties = {}, required = [], additionalProperties }: Schema): string[] {
    const named = Object.entries(properties).map(([name, schema]) => {
      const mark = required.includes(name) ? '' : '?'
      return `${comment(schema.description)}${quoted(name)}${mark}: ${this.typeOf(schema)}`
    })
    const isOpen = additionalProperties === true || typeof additionalProperties === 'object'
    // With named properties an index signature would have to fit them all.
    const value = typeof additionalProperties === 'object' && named.length === 0 ? additionalProperties : {}
    return isOpen ? [...named, `[name: string]: ${this.typeOf(value)}`] : named
  }

  /** The largest other schema whose properties are all among these, and its properties. */
  #extended(own: readonly string[]): readonly [string, readonly string[]] | undefined {
    return [...this.#schemas]
      .map(([name, schema]) => [name, this.#propertiesOf(schema)] as const)
      .filter(([, all]) => all.length >= EXTENDED && all.length < own.length)
      .filter(([, all]) => all.every(property => own.includes(property)))
      .toSorted(([, a], [, b]) => b.length - a.length)[0]
  }

  #declaration([name, schema]: [string, Schema]): string {
    const { type, properties = {}, required = [], description } = schema
    const docs = comment(description)
    const text = this.typeOf(schema)
    if (type !== 'object' || Object.keys(properties).length === 0 || !text.startsWith('{'))
      return `${docs}export type ${name} = ${text}\n`
    this.#keep(text, name)
    const all = this.#propertiesOf(schema)
    const [base, inherited = []] = this.#extended(all) ?? []
    const body = objectOf(all.filter(property => !inherited.includes(property)))
    for (const property of required)
      this.#keep(this.#textOf(properties[property] ?? {}), `${name}[${literal(property)}]`)
    return `${docs}export interface ${name} ${base === undefined ? '' : `extends ${base} `}${body}\n`
  }

  #keep(text: string, expression: string): void {
    if (text.includes('\n') && !this.#written.has(text)) this.#written.set(text, expression)
  }

  toString(): string {
    return [...this.#schemas].map(declared => this.#declaration(declared)).join('\n')
  }
}

interface Route {
  readonly method: string
  readonly path: string
  /** The name of the method of the client. */
  readonly name: string
  readonly operation: Operation
}

interface Argument {
  readonly name: string
  readonly type: string
  readonly isOptional: boolean
}

interface Method {
  readonly arguments: readonly Argument[]
  readonly result: string
  /** The call of the transport, with the names of the arguments. */
  readonly expression: string
}

const PATH_PARAMETER = /\{([^}]+)\}/g

/** A document comes from a service: its paths must not become code. */
const inTemplate = (text: string): string => text.replaceAll(/[\\`$]/g, '\\$&')

const pathOf = (path: string): string => {
  if (!path.includes('{')) return literal(path)
  // Texts and names in turn.
  const parts = path.split(PATH_PARAMETER)
  const written = parts.map((part, index) =>
    index % 2 === 0 ? inTemplate(part) : `\${segment(${identifier(part)})}`,
  )
  return `\`${written.join('')}\``
}

const idArguments = (path: string): Argument[] =>
  [...path.matchAll(PATH_PARAMETER)].map(([, name = '']) => ({
    name: identifier(name),
    type: 'string',
    isOptional: false,
  }))

const queryArgument = (route: Route, declarations: Declarations): Argument[] => {
  const parameters = (route.operation.parameters ?? []).filter(parameter => parameter.in === 'query')
  if (parameters.length === 0) return []
  const required = parameters.filter(({ required }) => required === true).map(({ name }) => name)
  const properties = Object.fromEntries(
    parameters.map(({ name, schema, description }) => [
      name,
      { ...schema, ...(description && { description }) },
    ]),
  )
  const type = declarations.add(`${capitalized(route.name)}Query`, { type: 'object', properties, required })
  return [{ name: 'query', type, isOptional: required.length === 0 }]
}

const bodyArgument = ({ name, operation }: Route, declarations: Declarations): Argument[] => {
  const { requestBody } = operation
  if (requestBody === undefined) return []
  const schema = requestBody.content[JSON_TYPE]?.schema ?? {}
  const isOptional = requestBody.required !== true
  return [{ name: 'body', type: declarations.named(schema, `${capitalized(name)}Body`), isOptional }]
}

const optionsArgument = ({ parameters = [] }: Operation): Argument => {
  const isConditional = parameters.some(({ name }) => name.toLowerCase() === 'if-match')
  return { name: 'options', type: isConditional ? 'ConditionalCallOptions' : 'CallOptions', isOptional: true }
}

const requiredFirst = (all: readonly Argument[]): Argument[] =>
  all.toSorted((a, b) => Number(a.isOptional) - Number(b.isOptional))

/** The contents of the responses of 2xx. */
const resultContents = ({ responses }: Operation): Content[] =>
  Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, { content = {} }]) => content)

/** The schemas of a content type in the responses of 2xx. */
const resultSchemas = (contents: readonly Content[], type: string): Schema[] =>
  contents.flatMap(content => content[type]?.schema ?? [])

/** What a stream, which has no end and one order, does not heed of the query of its list. */
const OF_PAGES = ['limit', 'sort']

/** The name of the method that follows a list: `streamEvents` of `listEvents`. */
const streamName = (name: string): string => `stream${capitalized(name.replace(/^list(?=[A-Z])/, ''))}`

/** Where there is JSON too, a client asks for text in a header of its own. */
const isTextual = (contents: readonly Content[]): boolean =>
  contents.some(
    content => !(JSON_TYPE in content) && Object.keys(content).some(type => type.startsWith('text/')),
  )

class Writer {
  readonly declarations = new Declarations()
  readonly #schemas: Readonly<Record<string, Schema>>

  constructor(schemas: Readonly<Record<string, Schema>>) {
    this.#schemas = schemas
    for (const [name, schema] of Object.entries(schemas)) this.declarations.add(typeName(name), schema)
  }

  /** @returns `null` for an operation with content that the client does not support. */
  method(route: Route): Method | null {
    const { requestBody } = route.operation
    const contents = resultContents(route.operation)
    const sent = Object.keys(requestBody?.content ?? {})
    if (contents.length === 0) return null
    if (sent.includes(NDJSON)) return this.#importMethod(route, resultSchemas(contents, NDJSON))
    if (sent.length > 0 && !sent.includes(JSON_TYPE)) return null
    return this.#requestMethod(route, contents)
  }

  /** The method that follows a list, if the operation has a stream of events too. */
  streams(route: Route): ClientMethod[] {
    const { parameters = [] } = route.operation
    const contents = resultContents(route.operation)
    const schemas = resultSchemas(contents, JSON_TYPE)
    if (!contents.some(content => EVENT_STREAM in content) || !this.#isPaginated(route, schemas)) return []
    const { items } = this.#propertiesOf(schemas[0]).results ?? {}
    const event = typeof items === 'object' ? this.declarations.typeOf(items) : 'unknown'
    const omitted = parameters.filter(({ name }) => OF_PAGES.includes(name)).map(({ name }) => literal(name))
    const query = `${capitalized(route.name)}Query`
    const summary = `Follow what \`${route.name}\` lists, as it happens, until you stop reading`
    const type = omitted.length === 0 ? query : `Omit<${query}, ${omitted.join(' | ')}>`
    const isOptional = parameters.every(({ in: place, required }) => place !== 'query' || required !== true)
    const method = {
      arguments: [
        ...idArguments(route.path),
        { name: 'query', type, isOptional },
        { name: 'options', type: 'StreamOptions', isOptional: true },
      ],
      result: `AsyncGenerator<StreamedEvent<${event}>, void, undefined>`,
      expression: `events(${pathOf(route.path)}, query, options)`,
    }
    const operation = { ...route.operation, summary }
    return [{ route: { ...route, name: streamName(route.name), operation }, method }]
  }

  #importMethod({ method, path, name, operation }: Route, [result]: Schema[]): Method | null {
    if (result === undefined) return null
    const line = this.declarations.named(
      operation.requestBody?.content[NDJSON]?.schema ?? {},
      `${capitalized(name)}Line`,
    )
    const lines = { name: 'lines', type: `Iterable<${line}> | AsyncIterable<${line}>`, isOptional: false }
    return {
      arguments: [...idArguments(path), lines, optionsArgument(operation)],
      result: `AsyncGenerator<${this.declarations.named(result, `${capitalized(name)}Result`)}, void, undefined>`,
      expression: `importLines(${literal(method)}, ${pathOf(path)}, lines, options)`,
    }
  }

  #requestMethod(route: Route, contents: readonly Content[]): Method {
    const { method, path, operation } = route
    const body = bodyArgument(route, this.declarations)
    const query = queryArgument(route, this.declarations)
    const options = optionsArgument(operation)
    const request = `{ ${[...query, ...body, options].map(({ name }) => name).join(', ')} }`
    const { form, result } = this.#result(route, contents)
    return {
      arguments: [...idArguments(path), ...requiredFirst([...body, ...query, options])],
      result,
      expression:
        form === 'pages'
          ? `pages(${pathOf(path)}, query, options)`
          : `${form}(${literal(method)}, ${pathOf(path)}, ${request})`,
    }
  }

  /** The type of what a method returns, and the call of the transport that makes it. */
  #result(route: Route, contents: readonly Content[]): { form: keyof Transport; result: string } {
    const [line] = resultSchemas(contents, NDJSON)
    const name = capitalized(route.name)
    if (line !== undefined)
      return {
        form: 'lines',
        result: `AsyncGenerator<${this.declarations.named(line, `${name}Line`)}, void, undefined>`,
      }
    if (isTextual(contents)) return { form: 'text', result: 'Call<string>' }
    const schemas = resultSchemas(contents, JSON_TYPE)
    const types = schemas.map((schema, index) =>
      this.declarations.named(schema, `${name}Result${index === 0 ? '' : index + 1}`),
    )
    const type = types.length === 0 ? 'void' : union(types)
    if (this.#isPaginated(route, schemas)) return { form: 'pages', result: `Pages<${type}>` }
    return { form: formOf(route, schemas), result: `Call<${type}>` }
  }

  #isPaginated({ method, operation }: Route, [schema = {}]: Schema[]): boolean {
    const properties = this.#propertiesOf(schema)
    const hasCursor = operation.parameters?.some(({ name }) => name === 'cursor') === true
    return method === 'GET' && hasCursor && 'results' in properties && 'nextCursor' in properties
  }

  #propertiesOf(schema: Schema = {}): Readonly<Record<string, Schema>> {
    const { properties = {} } = this.#schemas[schema.$ref?.replace(/.*\//, '') ?? ''] ?? schema
    return properties
  }
}

const isAdmin = ({ security = [] }: Operation): boolean => security.some(scheme => 'adminKey' in scheme)

const formOf = ({ name, operation }: Route, schemas: readonly Schema[]): 'signIn' | 'signOut' | 'json' => {
  if (ENDS_SESSION.has(name)) return 'signOut'
  // The session that an administrator opens is not the client's own.
  const alternatives = schemas.flatMap(schema => schema.anyOf ?? [schema])
  return alternatives.some(({ $ref }) => $ref === SIGNED_IN) && !isAdmin(operation) ? 'signIn' : 'json'
}

/** The method with its documentation: sentences, and the route. */
const textOf = ({ route, method }: ClientMethod): string => {
  const { summary, description } = route.operation
  const sentences = [summary, description].flatMap(text => text?.replace(/\.?$/, '.') ?? [])
  const parameters = method.arguments.map(
    ({ name, type, isOptional }) => `${name}${isOptional ? '?' : ''}: ${type}`,
  )
  return `${comment([...sentences, `\`${route.method} ${route.path}\``].join(' '))}${route.name}: (${parameters.join(', ')}): ${method.result} =>
  transport.${method.expression},
`
}

interface ClientMethod {
  readonly route: Route
  readonly method: Method
}

interface Group {
  readonly type: string
  readonly description: string
  readonly methods: readonly ClientMethod[]
}

const clientOf = ({ type, description, methods }: Group): string => {
  const transport = type === 'Client' ? 'userTransport' : 'adminTransport'
  return `export const create${type} = (options: ${type}Options) => {
  const transport = ${transport}(options)
  return {
${indented(indented(methods.map(textOf).join('')))}  }
}

${comment(description)}export interface ${type} extends ReturnType<typeof create${type}> {}
`
}

const routesOf = ({ paths }: OpenApiDocument): Route[] =>
  Object.entries(paths).flatMap(([path, operations]) =>
    METHODS.flatMap(method => {
      const operation = operations[method]
      if (operation === undefined) return []
      const name = identifier(operation.operationId ?? `${method} ${path}`)
      return [{ method: method.toUpperCase(), path, name, operation }]
    }),
  )

/** The names of a list that the text uses. */
const usedIn = (text: string, names: readonly string[]): string[] =>
  names.filter(name => new RegExp(`\\b${name}\\b`).test(text))

/**
 * The source of a client. Operations without a response of 2xx (links for browsers), and those whose bodies are neither JSON nor
 * NDJSON, are not part of it; a comment names them.
 * @param runtime the specifier from which the source imports its runtime.
 * @throws {Error} if two schemas, or a schema and the client, have one name.
 */
export const generateClient = (document: OpenApiDocument, runtime: string): string => {
  const writer = new Writer(document.components?.schemas ?? {})
  const written = routesOf(document).map(route => ({ route, method: writer.method(route) }))
  const methods = written.flatMap(({ route, method }) =>
    method === null ? [] : [{ route, method }, ...writer.streams(route)],
  )
  const others = written
    .filter(({ method }) => method === null)
    .map(({ route }) => `${route.method} ${route.path.replaceAll(/\s/g, ' ')}`)
  const clients = [
    {
      type: 'Client',
      description: 'What users and everybody may do.',
      methods: methods.filter(({ route }) => !isAdmin(route.operation)),
    },
    {
      type: 'AdminClient',
      description: 'What an admin key may do, depending on its scopes.',
      methods: methods.filter(({ route }) => isAdmin(route.operation)),
    },
  ]
    .filter(({ methods }) => methods.length > 0)
    .map(clientOf)
  const code = `${writer.declarations}\n${clients.join('\n')}`
  const imports = [
    ...usedIn(code, RUNTIME_VALUES),
    ...usedIn(code, RUNTIME_TYPES).map(name => `type ${name}`),
  ]
  return `// Generated from the OpenAPI document of the service: \`npm run client\` in its project, or gatehouse-client. Do not edit.
${others.length === 0 ? '' : `// Without ${others.join(', ')}.\n`}import {
${imports.map(name => `  ${name},\n`).join('')}} from '${runtime}'

export { ${PUBLIC_VALUES.join(', ')} } from '${runtime}'
export type {
${PUBLIC_TYPES.map(name => `  ${name},\n`).join('')}} from '${runtime}'

${code}`
}
