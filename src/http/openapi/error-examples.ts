/** Examples of the errors that follow from the declaration of a route, for the OpenAPI document. */
import { ERRORS, type ErrorName, errorBody } from '#base/errors'
import { fieldErrors } from '../validation/field-errors.ts'
import { FORM_TYPE } from '../validation/form.ts'
import { NDJSON } from '../validation/ndjson.ts'

interface Route {
  readonly config?: Readonly<Partial<Record<'gate' | 'reauthenticate' | 'roles' | 'scope', unknown>>>
  readonly schema?: {
    readonly consumes?: readonly string[]
    readonly body?: unknown
    readonly params?: unknown
  }
}

const refused = ({ config = {} }: Route): ErrorName => {
  if (config.gate === undefined) return 'csrf'
  if (config.reauthenticate) return 'reauthenticationRequired'
  if (config.roles !== undefined) return 'roleRequired'
  return config.scope === undefined ? 'sessionRequired' : 'scopeRequired'
}

const unsupported = ({ schema }: Route): ErrorName => {
  if (schema?.consumes?.includes(NDJSON)) return 'ndjsonRequired'
  return schema?.consumes?.includes(FORM_TYPE) ? 'formOrJsonRequired' : 'unsupportedMediaType'
}

const OF_STATUS: Readonly<Record<string, ErrorName | ((route: Route) => ErrorName)>> = {
  401: ({ config }) => (config?.gate === 'adminKey' ? 'adminKeyRequired' : 'signInRequired'),
  403: refused,
  408: 'requestTimeout',
  412: 'versionChanged',
  413: 'bodyTooLarge',
  415: unsupported,
  429: 'tooManyRequests',
  431: 'headersTooLarge',
  500: 'internalError',
  503: 'storeUnavailable',
}

interface Input {
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, { readonly format?: string }>>
}

/** A violation of the schemas of the route, or what any request can violate. */
const invalid = ({ schema = {} }: Route): object => {
  const [missingProperty] = (schema.body as Input | undefined)?.required ?? []
  if (missingProperty !== undefined)
    return { errors: fieldErrors([{ keyword: 'required', instancePath: '', params: { missingProperty } }]) }
  const params = Object.entries((schema.params as Input | undefined)?.properties ?? {})
  const [id] = params.find(([, { format }]) => format === 'uuid') ?? []
  if (id !== undefined)
    return {
      errors: fieldErrors([{ keyword: 'format', instancePath: `/${id}`, params: { format: 'uuid' } }]),
    }
  return errorBody(ERRORS.badHost.field, ERRORS.badHost.message)
}

/** @returns an error that the route can return with the status; `undefined` if only its handler knows one. */
export const errorExample = (route: Route, status: number): object | undefined => {
  if (status === 400) return invalid(route)
  const found = OF_STATUS[status]
  const name = typeof found === 'function' ? found(route) : found
  return name && errorBody(ERRORS[name].field, ERRORS[name].message)
}
