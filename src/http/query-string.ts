/** Query strings in strict UTF-8. */
import { parse } from 'node:querystring'

/** Replaces a value that cannot be decoded. Every schema rejects it, with the name of the parameter. */
const INVALID = '\ud800'

/** Percent-encoded text is UTF-8 (RFC 3986 §2.5). */
const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return INVALID
  }
}

const OPTIONS = { maxKeys: 0, decodeURIComponent: decode }

/** The router's parser, which must not throw. Fastify's default passes on undecodable values as they are. */
export const parseQuery = (text: string): Record<string, unknown> =>
  text === '' ? {} : parse(text, '&', '=', OPTIONS)
