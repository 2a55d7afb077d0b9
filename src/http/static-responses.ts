/** Responses that never change while the service runs: created at the first request, then sent from memory. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { acceptedCoding } from './content-codings.ts'
import { parseEntityTags } from './validation/entity-tags.ts'

interface Content {
  readonly plain: Buffer
  /** `null` if compression does not pay. */
  readonly gzipped: Buffer | null
  /** A hash of the content, so that all instances of one version send the same ETag. */
  readonly digest: string
}

export interface StaticResponse {
  readonly type: string
  /** Seconds for which caches may send it without asking. 0: they revalidate each time. */
  readonly lifetime: number
  content(): Promise<Content>
}

const MIN_COMPRESSED = 1_024

const prepare = async (content: string | Buffer, type: string): Promise<Content> => {
  const plain = Buffer.from(content)
  const compresses = plain.length >= MIN_COMPRESSED && !/^(?:image|font)\//.test(type)
  return {
    plain,
    // Not Brotli: no browser accepts it over plain http.
    gzipped: compresses ? await promisify(gzip)(plain) : null,
    digest: createHash('sha256').update(plain).digest('hex').slice(0, 22),
  }
}

/** @param load is called at the first request, and again after it has failed. */
export const staticResponse = (
  type: string,
  load: () => string | Buffer | Promise<string>,
  lifetime = 0,
): StaticResponse => {
  let content: Promise<Content> | null = null
  return {
    type,
    lifetime,
    content: () => {
      content ??= Promise.try(load)
        .then(loaded => prepare(loaded, type))
        .catch(error => {
          content = null
          throw error
        })
      return content
    },
  }
}

const isFresh = (ifNoneMatch: string, digest: string): boolean =>
  parseEntityTags(ifNoneMatch)?.has(digest) ?? true

/** Sends the response: compressed if the client accepts gzip, 304 if it has the current version. */
export const sendStatic = async (
  { type, lifetime, content }: StaticResponse,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> => {
  const { plain, gzipped, digest } = await content()
  const compressed = acceptedCoding(request.headers['accept-encoding'], ['gzip']) && gzipped
  const tag = compressed ? `${digest}-gzip` : digest
  reply.headers({
    etag: `"${tag}"`,
    'cache-control': lifetime === 0 ? 'public, no-cache' : `public, max-age=${lifetime}`,
  })
  if (gzipped !== null) reply.vary('accept-encoding')
  // Whatever its coding: Caddy takes `-gzip` off the tags of clients, also where it is ours.
  if (isFresh(request.headers['if-none-match'] ?? '', digest)) return reply.code(304).send()
  if (compressed) reply.header('content-encoding', 'gzip')
  return reply.type(type).send(compressed ?? plain)
}
