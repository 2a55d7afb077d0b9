/** Validation of what options and arguments form together, by the schemas of the HTTP API. */
import { fieldErrors } from '../validation/field-errors.ts'
import { sentences, UsageError } from './failure.ts'

type Schemas = typeof import('../validation/schemas.ts')

/** Applies the rules of the HTTP API, which are loaded on demand. @throws {UsageError} with the API's messages. */
export const validated = async <Input extends object>(
  input: Input,
  schemaOf: (schemas: Schemas) => object,
): Promise<Input> => {
  const schemas = await import('../validation/schemas.ts')
  const { jsonValidator } = await import('../validation/compile.ts')
  const validate = jsonValidator(schemaOf(schemas))
  const copy = { ...input }
  if (!validate(copy as Record<string, unknown>))
    throw new UsageError(sentences(fieldErrors(validate.errors ?? [])).join('\n'))
  return copy
}
