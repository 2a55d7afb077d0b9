/** Rules of metadata: JSON that every store and every client reads alike, of bounded size and depth. */
import { METADATA_DEPTH, METADATA_LIMIT } from '#core/users/metadata'
import type { FieldViolation } from './field-errors.ts'

/** A violation, with its place below the metadata object. */
export type MetadataViolation = Pick<FieldViolation, 'keyword' | 'params' | 'message' | 'instancePath'>

/** Validates metadata against the operator's schema. Changes nothing. @returns all violations. */
export type ValidateMetadata = (metadata: unknown) => readonly MetadataViolation[]

/** An operator's JSON Schema of metadata, and what it compiles to. */
export interface MetadataSchema {
  readonly schema: Readonly<Record<string, unknown>>
  readonly validate: ValidateMetadata
}

/** The schemas of both kinds of metadata; `null`: any JSON object. */
export interface MetadataSchemas {
  readonly user: MetadataSchema | null
  readonly app: MetadataSchema | null
}

const segment = (name: string | number): string =>
  `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** Without NUL and lone surrogates, which PostgreSQL cannot store (docs/design.md, "Contract"). @returns the messages. */
const textViolations = (text: string): string[] => [
  ...(text.isWellFormed() ? [] : ['must be valid Unicode']),
  ...(text.includes('\0') ? ['must not contain NUL'] : []),
]

const INEXACT = 'must be a number that keeps its value: write an integer beyond ±9007199254740991 as text'

/** RFC 7493 §2.2: beyond these integers a double changes the value. `1e999` is parsed as infinity. */
const isExact = (number: number): boolean =>
  Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))

const leafViolations = (value: unknown): string[] => {
  if (typeof value === 'string') return textViolations(value)
  return typeof value === 'number' && !isExact(value) ? [INEXACT] : []
}

const DEPTH = `must have at most ${METADATA_DEPTH} levels`

function* violationsOf(value: unknown, path: string, level: number): Generator<MetadataViolation> {
  const violation = (message: string) => ({ keyword: 'metadata', params: {}, message, instancePath: path })
  for (const message of leafViolations(value)) yield violation(message)
  if (typeof value !== 'object' || value === null) return
  if (level > METADATA_DEPTH) return yield violation(DEPTH)
  for (const [name, inner] of Object.entries(value)) {
    for (const message of textViolations(name))
      yield { ...violation(message), instancePath: path + segment(name) }
    yield* violationsOf(inner, path + segment(name), level + 1)
  }
}

/** Characters of all paths that are reported. Each violation has its path, which can be as long as the metadata. */
const MAX_PATHS = 65_536

const MAX_PATH = 200

const shortened = (violation: MetadataViolation): MetadataViolation =>
  violation.instancePath.length <= MAX_PATH
    ? violation
    : { ...violation, instancePath: `${violation.instancePath.slice(0, MAX_PATH)}…` }

/** @returns the first violations: a small request must not get a large response. */
const bounded = (violations: Iterable<MetadataViolation>): readonly MetadataViolation[] => {
  const reported: MetadataViolation[] = []
  let characters = 0
  for (const violation of violations) {
    reported.push(shortened(violation))
    characters += violation.instancePath.length
    if (characters > MAX_PATHS) break
  }
  return reported
}

/** @returns the first violations of the service's own rules, and if there are none, those of the operator's schema. */
export const metadataViolations = (
  metadata: unknown,
  validate: ValidateMetadata | null,
): readonly MetadataViolation[] => {
  const violations = bounded(violationsOf(metadata, '', 1))
  if (violations.length > 0) return violations
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_LIMIT)
    return [
      {
        keyword: 'metadata',
        params: {},
        message: `must have at most ${METADATA_LIMIT} bytes as JSON`,
        instancePath: '',
      },
    ]
  return bounded(validate?.(metadata) ?? [])
}
