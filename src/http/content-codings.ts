/** Content codings of responses: which one a client prefers (RFC 9110 §12.5.3), and how to apply it. */
import {
  type BrotliCompress,
  brotliCompress,
  constants,
  createBrotliCompress,
  createGzip,
  type Gzip,
  gzip,
} from 'node:zlib'
import { codingWeights } from './validation/weighted-elements.ts'

type Done = (error: Error | null, compressed: Buffer) => void

interface Codec {
  /** Compresses in libuv's threads, off the event loop. */
  compress(text: string, done: Done): void
  /** Flushes after each chunk, so that a slow stream arrives as it is written. */
  createStream(): BrotliCompress | Gzip
}

/** Higher qualities take longer than they save on lists. */
const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 4,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
}

/** By name, the preferred one first. Not zstd, which is experimental in Node 24. */
const CODECS = {
  br: {
    compress: (text, done) => brotliCompress(text, BROTLI, done),
    createStream: () => createBrotliCompress({ ...BROTLI, flush: constants.BROTLI_OPERATION_FLUSH }),
  },
  gzip: {
    compress: (text, done) => gzip(text, done),
    createStream: () => createGzip({ flush: constants.Z_SYNC_FLUSH }),
  },
} satisfies Record<string, Codec>

type Coding = keyof typeof CODECS

const CODINGS = Object.keys(CODECS) as Coding[]

export interface AcceptedCoding {
  readonly name: Coding
  readonly codec: Codec
  /** Whether the client refuses responses without a coding. */
  readonly isRequired: boolean
}

/**
 * @param codings that the response can have, the preferred one first: browsers accept all alike.
 * @returns the coding that the client likes best, `null` for none. A client that accepts nothing at all gets no coding, as from
 * routes that are never compressed.
 */
export const acceptedCoding = (
  acceptEncoding: string | undefined,
  codings: readonly Coding[] = CODINGS,
): AcceptedCoding | null => {
  if (acceptEncoding === undefined) return null
  const weights = codingWeights(acceptEncoding)
  const others = weights.get('*')
  const weightOf = (coding: Coding): number => weights.get(coding) ?? others ?? 0
  const best = Math.max(...codings.map(weightOf))
  // Without a weight, `identity` is acceptable, but the last choice.
  const identity = weights.get('identity') ?? others
  const name = codings.find(coding => weightOf(coding) === best)
  if (name === undefined || best === 0 || best < (identity ?? 0)) return null
  return { name, codec: CODECS[name], isRequired: identity === 0 }
}
