import { parse } from 'node:querystring'

/** What stands for a value that is no text: no schema takes it, and the error has the name of the parameter. */
const NO_TEXT = '\ud800'

/** What a URL percent-encodes is UTF-8 (RFC 3986 §2.5); of anything else than ASCII in it, Node's parser knows none. */
const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return NO_TEXT
  }
}

const OPTIONS = { maxKeys: 0, decodeURIComponent: decode }

/** For the router, which parsers must not throw to; Fastify's own takes what it cannot decode as it stands. */
export const parseQuery = (text: string): Record<string, unknown> =>
  text === '' ? {} : parse(text, '&', '=', OPTIONS)
