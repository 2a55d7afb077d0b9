/**
 * The service without what every request does for metrics. There is no option for this, because metrics are always counted (DESIGN
 * §14): the sources are changed when they are loaded.
 */
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

const CHANGES: Readonly<Record<string, (source: string) => string>> = {
  'plugins/request-durations.ts': () =>
    "import fp from 'fastify-plugin'\nexport default fp(async () => undefined, { name: 'request-durations' })\n",
  'src/core/auth/authenticator.ts': source => source.replaceAll(/^ *this\.#(hits|misses) \+= 1$/gm, ''),
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const change = url.startsWith('file:') ? CHANGES[fileURLToPath(url).replace(ROOT, '')] : undefined
    if (change === undefined) return loaded
    const original = String(loaded.source)
    const source = change(original)
    if (source === original) throw new Error(`${url} does not count any more`)
    return { ...loaded, source }
  },
})

const { listen } = await import('./listen.ts')
await listen(async () => ({}))
