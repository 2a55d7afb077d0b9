/**
 * Schemas of the details of events: JSON Schema with the types of TypeBox, and without its 200 modules. The writer thread of
 * SQLite imports events. They were half of the work of its start.
 */
import type { TArray, TObject, TOptional, TProperties, TSchema, TString } from '@sinclair/typebox'

/** The symbols that TypeBox's types have belong to its own functions alone: validators and serializers read JSON Schema. */
const typed = <Schema extends TSchema>(schema: object): Schema => schema as unknown as Schema

export const textSchema = (description: string): TString => typed({ description, type: 'string' })

export const textsSchema = (description: string): TArray<TString> =>
  typed({ description, type: 'array', items: { type: 'string' } })

export const detailsSchema = <Properties extends TProperties>(properties: Properties): TObject<Properties> =>
  typed({ type: 'object', required: Object.keys(properties), properties })

/** Details whose properties are all optional. */
export const optionalDetailsSchema = <Properties extends TProperties>(
  properties: Properties,
): TObject<{ [Name in keyof Properties]: TOptional<Properties[Name]> }> =>
  typed({ type: 'object', properties })
