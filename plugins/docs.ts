/** Pages to read the OpenAPI document, at /docs: Swagger UI, from memory and from this service alone. */
import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { type Kept, kept, sendKept } from '../src/http/static-responses.ts'

const HTML = 'text/html; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'

/** Below the page's own path, so that it works behind a proxy that puts a path before the service's. */
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

/** Without the validator on the internet, which the page would ask about the document. */
const INITIALIZER = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
})
`

/** What @fastify/swagger-ui brings of Swagger UI's distribution. It would be read from the disk and sent whole each time. */
const FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'index.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': SCRIPT,
  'favicon-32x32.png': 'image/png',
}

const read = (name: string): Buffer =>
  readFileSync(new URL(`static/${name}`, import.meta.resolve('@fastify/swagger-ui')))

/** Styles are partly inline. Served over http as well as https; no other site shows the page in a frame of its own. */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; " +
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const docs = async (app: FastifyInstance): Promise<void> => {
  if (!app.config.hasDocs) return
  const serve = (url: string, answer: Kept): void => {
    app.get(url, { schema: { hide: true } }, (request, reply) =>
      sendKept(answer, request, reply.headers(HEADERS)),
    )
  }

  serve(
    '/docs',
    kept(HTML, () => PAGE),
  )
  serve(
    '/docs/static/swagger-initializer.js',
    kept(SCRIPT, () => INITIALIZER),
  )
  for (const [name, type] of Object.entries(FILES))
    serve(
      `/docs/static/${name}`,
      kept(type, () => read(name)),
    )
  app.get('/docs/', { schema: { hide: true } }, (_request, reply) => reply.redirect('../docs', 303))
  serve(
    '/openapi.json',
    kept('application/json; charset=utf-8', () => JSON.stringify(app.swagger())),
  )
}

export default fp(docs, { name: 'docs', dependencies: ['openapi'] })
