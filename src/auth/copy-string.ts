/**
 * A copy that does not share memory. V8 keeps a whole header field (up to 16 KB of cookies) for as long as a token that was
 * sliced from it.
 */
export const copyString = (text: string): string => Buffer.from(text).toString()
