/** Names in the OpenAPI document for operations that declare none: `operationId` and tag follow from method and URL. */

export const capitalized = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1)

/** `api-keys` → `ApiKeys` */
const pascalCase = (segment: string): string =>
  segment
    .split(/[^a-z\d]+/i)
    .map(capitalized)
    .join('')

const singular = (noun: string): string => {
  if (/ies$/.test(noun)) return noun.replace(/ies$/, 'y')
  if (/(s|x|ch|sh)es$/.test(noun)) return noun.slice(0, -2)
  return /[^s]s$/.test(noun) ? noun.slice(0, -1) : noun
}

const isPlural = (noun: string): boolean => singular(noun) !== noun

const isParameter = (segment: string | undefined): boolean => /^[:*]/.test(segment ?? '')

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

interface Operation {
  readonly method: string
  /** Without the prefix of the service: `/notes/:id`. */
  readonly url: string
  readonly isList: boolean
}

/**
 * `GET /notes` → `listNotes`, `POST /notes` → `createNote`, `PUT /notes/:id` → `updateNote`, `POST /notes/:id/publish` →
 * `publishNote`. A camelCase name, from which client generators make a method.
 */
export const operationIdOf = ({ method, url, isList }: Operation): string => {
  const segments = url.split('/').filter(segment => segment !== '')
  const last = segments.at(-1) ?? ''
  // The item of a collection is singular: before a parameter, and where one is created.
  const nouns = segments
    .map((segment, index) => (isParameter(segments[index + 1]) ? singular(segment) : segment))
    .filter(segment => !isParameter(segment))
    .map(pascalCase)
  if (method === 'POST' && !isPlural(last) && !isParameter(last) && segments.length > 0) {
    const action = nouns.pop() ?? ''
    return action.slice(0, 1).toLowerCase() + action.slice(1) + nouns.join('')
  }
  if (method === 'POST' && nouns.length > 0) nouns.push(singular(nouns.pop() ?? ''))
  const verb = method === 'GET' && isList ? 'list' : (VERBS[method] ?? method.toLowerCase())
  return verb + (nouns.join('') || 'Root')
}

/** The folder of the route: `notes` of `/notes/:id`, `admin users` of `/admin/users`. */
export const tagOf = (url: string): string => {
  const [first = 'service', second] = url.split('/').filter(segment => segment !== '')
  return first === 'admin' && second !== undefined ? `admin ${second}` : first
}
