/** Bytes of a body, or of a line of what has lines. */
export const BODY_LIMIT = 16_384
