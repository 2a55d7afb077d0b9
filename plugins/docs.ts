/** Swagger UI at /docs, served from memory, without other hosts. */
import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { type StaticResponse, sendStatic, staticResponse } from '#http/static-responses'

const HTML = 'text/html; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'

/** A page with relative URLs, so that it works behind a proxy that adds a path prefix. */
const PAGE = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<title>Gatehouse</title>
<link rel="stylesheet" href="docs/static/swagger-ui.css">
<link rel="stylesheet" href="docs/static/index.css">
<link rel="icon" type="image/png" href="docs/static/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/static/swagger-ui-bundle.js"></script>
<script src="docs/static/swagger-initializer.js"></script>
</body>
</html>
`

/** Disables the online validator, to which the page would send the document. */
const INITIALIZER = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
})
`

/** Files of @fastify/swagger-ui, which itself would read them from disk and send them uncompressed each time. */
const FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'index.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': SCRIPT,
  'favicon-32x32.png': 'image/png',
}

const read = (name: string): Buffer =>
  readFileSync(new URL(`static/${name}`, import.meta.resolve('@fastify/swagger-ui')))

/** Allows inline styles, which Swagger UI uses; forbids frames on other sites. */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; " +
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

const docs = async (app: FastifyInstance): Promise<void> => {
  if (!app.config.hasDocs) return
  const serve = (url: string, response: StaticResponse): void => {
    app.get(url, { schema: { hide: true } }, (request, reply) =>
      sendStatic(response, request, reply.headers(HEADERS)),
    )
  }

  const page = staticResponse(HTML, () => PAGE)
  const { ignoreTrailingSlash } = app.initialConfig.routerOptions ?? {}
  // A host's router may ignore the slash at the end, with which the page's relative URLs would be wrong.
  for (const url of ignoreTrailingSlash ? ['/docs'] : ['/docs', '/docs/'])
    app.get(url, { schema: { hide: true } }, (request, reply) =>
      /\/(?:\?|$)/.test(request.url)
        ? reply.redirect('../docs', 303)
        : sendStatic(page, request, reply.headers(HEADERS)),
    )
  serve(
    '/docs/static/swagger-initializer.js',
    staticResponse(SCRIPT, () => INITIALIZER),
  )
  for (const [name, type] of Object.entries(FILES))
    serve(
      `/docs/static/${name}`,
      staticResponse(type, () => read(name)),
    )
  serve(
    '/openapi.json',
    staticResponse('application/json; charset=utf-8', async () =>
      JSON.stringify(await app.openApiDocument()),
    ),
  )
}

export default fp(docs, { name: 'docs', dependencies: ['openapi'] })
