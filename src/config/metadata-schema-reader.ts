/** Reads `USER_METADATA_SCHEMA` and `APP_METADATA_SCHEMA`: files with a JSON Schema (2020-12). */
import type { MetadataSchema } from '../validation/metadata.ts'
import { compileMetadataSchema } from '../validation/metadata-schema.ts'
import { nameOf, readFile } from './files.ts'
import { type Reader, SettingError } from './readers.ts'

const parse = (file: string, text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new SettingError(`names a file that is not valid JSON${nameOf(file)}`)
  }
}

export const metadataSchema: Reader<MetadataSchema> = file => {
  const schema = parse(file, readFile(file))
  try {
    return compileMetadataSchema(schema)
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1)
    throw new SettingError(`names a file that is not a JSON Schema (2020-12)${nameOf(file)} (${reason})`)
  }
}
