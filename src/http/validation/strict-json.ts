/** A JSON parser that rejects what other parsers may read differently, and the size limit of bodies. */
import { parse } from 'secure-json-parse'
import { ServiceError } from '#base/errors'

export const BODY_LIMIT = 16_384

const QUOTE = '"'.charCodeAt(0)
const COLON = ':'.charCodeAt(0)
const BACKSLASH = '\\'.charCodeAt(0)

/** The number of object members in a JSON text: colons outside of strings. */
const countWritten = (text: string): number => {
  let members = 0
  let inString = false
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (inString && code === BACKSLASH) index += 1
    else if (code === QUOTE) inString = !inString
    else if (code === COLON && !inString) members += 1
  }
  return members
}

/** The number of object members after parsing. Without recursion: a body may be nested thousands of levels deep. */
const countParsed = (value: unknown): number => {
  let members = 0
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null) continue
    const values = Object.values(next)
    if (!Array.isArray(next)) members += values.length
    for (const inner of values) open.push(inner)
  }
  return members
}

const parseSafely = (text: string): unknown => {
  try {
    // Rejects `__proto__`, and `constructor` with a `prototype`.
    return parse(text, { protoAction: 'error', constructorAction: 'error' })
  } catch {
    // The parser's message quotes the body, so it is dropped. Parsing without the checks shows which error it was.
    parsePlainly(text)
    throw new ServiceError('dangerousKey')
  }
}

const parsePlainly = (text: string): void => {
  try {
    parse(text, { protoAction: 'ignore', constructorAction: 'ignore' })
  } catch {
    throw new ServiceError('malformedJson')
  }
}

/**
 * Parses JSON (RFC 8259). Rejects duplicate property names, of which the last would silently win, and names that reach an
 * object's prototype.
 * @throws {ServiceError} `malformedJson`, `duplicateKey`, `dangerousKey`
 */
export const parseStrictJson = (text: string): unknown => {
  const value = parseSafely(text)
  if (countWritten(text) !== countParsed(value)) throw new ServiceError('duplicateKey')
  return value
}
