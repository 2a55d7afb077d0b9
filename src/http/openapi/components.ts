/** Components of the OpenAPI document: schemas with a title, and those of metadata, which the operator can set. */
import { isDeepStrictEqual } from 'node:util'
import { KEYWORDS } from '../validation/keywords.ts'
import type { MetadataSchema, MetadataSchemas } from '../validation/metadata.ts'

export type Json = Record<string, unknown>

const OWN_KEYWORDS = new Set(KEYWORDS.map(({ keyword }) => keyword))

/** Components of their own: see {@link metadataComponents}. */
const METADATA = new Set(['UserMetadata', 'AppMetadata'])

/** Examples are values: a `title` or a keyword in them means nothing. A property of this name has a schema instead. */
const isExample = (key: string, owner: object, value: unknown): boolean =>
  (key === 'examples' && Array.isArray(value)) || (key === 'example' && 'schema' in owner)

/**
 * Moves schemas with a title to the components, and replaces them by references. A second schema of the same title, which differs,
 * stays in its place.
 */
export const hoist = (value: unknown, components: Json): unknown => {
  if (Array.isArray(value)) return value.map(item => hoist(item, components))
  if (typeof value !== 'object' || value === null) return value
  const copy: Json = {}
  for (const [key, inner] of Object.entries(value)) {
    // A property of this name has a schema, which is an object; the value of a custom keyword is not.
    if ((typeof inner !== 'object' || inner === null) && OWN_KEYWORDS.has(key)) continue
    copy[key] = isExample(key, value, inner) ? inner : hoist(inner, components)
  }
  if (typeof copy.title !== 'string' || copy.type !== 'object') return copy
  components[copy.title] ??= copy
  const isComponent = METADATA.has(copy.title) || isDeepStrictEqual(components[copy.title], copy)
  return isComponent ? { $ref: `#/components/schemas/${copy.title}` } : copy
}

/** Moves the references within a schema to its place in the document. */
const relocate = (value: unknown, base: string): unknown => {
  if (Array.isArray(value)) return value.map(item => relocate(item, base))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string' && /^#(\/|$)/.test(inner)
        ? `${base}${inner.slice(1)}`
        : relocate(inner, base),
    ]),
  )
}

/** The component of a kind of metadata: the operator's schema, or any object. */
const metadataComponent = (title: string, own: MetadataSchema | null): object => {
  const { $schema: _dialect, $id: _id, ...schema } = own?.schema ?? { additionalProperties: true }
  return { title, type: 'object', ...(relocate(schema, `#/components/schemas/${title}`) as object) }
}

export const metadataComponents = ({ user, app }: MetadataSchemas): Json => ({
  UserMetadata: metadataComponent('UserMetadata', user),
  AppMetadata: metadataComponent('AppMetadata', app),
})
