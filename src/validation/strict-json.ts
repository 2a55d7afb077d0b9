import { parse } from 'secure-json-parse'
import { ServiceError } from '../errors.ts'

/** Bytes of a body, or of a line of what has lines. */
export const BODY_LIMIT = 16_384

/** How many members the objects of a JSON text have together: colons outside of strings. */
const countWritten = (text: string): number => {
  let members = 0
  let inString = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]
    if (inString && character === '\\') index += 1
    else if (character === '"') inString = !inString
    else if (character === ':' && !inString) members += 1
  }
  return members
}

/** How many members are left after parsing. Without recursion: a body may be nested thousands deep. */
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
    // Refuses `__proto__`, and `constructor` with a `prototype`.
    return parse(text, { protoAction: 'error', constructorAction: 'error' })
  } catch {
    // The parser's message quotes the body: it goes nowhere. Which of its two faults it was shows without its checks.
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
 * Parses JSON (RFC 8259), refusing what other parsers may read differently: a property named twice (the last one would
 * silently win), and names that reach an object's prototype.
 * @throws {ServiceError} `malformedJson`, `duplicateKey`, `dangerousKey`
 */
export const parseStrictJson = (text: string): unknown => {
  const value = parseSafely(text)
  if (countWritten(text) !== countParsed(value)) throw new ServiceError('duplicateKey')
  return value
}
