/**
 * Preloaded by test files (`scripts/with-postgres.ts`). It saves what tests with tap take besides their own work.
 *
 * tap adds a module to the `NODE_OPTIONS` of every process and thread that a test starts, to measure coverage and record the loaded
 * files. Without coverage nothing reads the records.
 *
 * Its hook that records what is loaded keeps Node from caching TypeScript without types: a second of a core for each test file.
 *
 * tap follows every promise, timer and socket with a hook, to say which test an uncaught error belongs to. Without the hook such an error
 * still fails the file, with its stack.
 *
 * `@fastify/autoload` lists the folders of routes and looks for `package.json` above each of them, for every app: a tenth of its cost. These
 * files do not change while tests run, so each is read once.
 *
 * Fastify looks for the name of a plugin in all modules that were required: tap's make an app up to 15 ms slower. With a display name it
 * does not look.
 */
import hooks, { type AsyncHook, type HookCallbacks } from 'node:async_hooks'
import files from 'node:fs/promises'
import module, { syncBuiltinESMExports } from 'node:module'
import { fileURLToPath } from 'node:url'
import processOnSpawn from 'process-on-spawn'

const OF_TAP = /"?--import=[^" ]*@tapjs\/processinfo\/[^" ]*"? ?/

const OWN = /"?--import=[^" ]*\/light-tap\.ts"? ?/

/** Removes modules that are preloaded, and keeps the options that a test sets. */
const remove = (modules: RegExp, env: NodeJS.ProcessEnv): void => {
  const options = env.NODE_OPTIONS?.replace(modules, '').trim() ?? ''
  if (options === '') delete env.NODE_OPTIONS
  else env.NODE_OPTIONS = options
}

// Not in the process of tap itself, whose environment the test files get.
if (process.env.TAP_CHILD_ID !== undefined) remove(OWN, process.env)
if (process.env.TAP_DISABLE_COVERAGE === '1') {
  // Threads with options of their own take these from here.
  remove(OF_TAP, process.env)
  processOnSpawn.addListener(({ env }) => remove(OF_TAP, env))
  const { registerHooks } = module
  module.registerHooks = options =>
    new Error().stack?.includes('@tapjs/processinfo')
      ? { deregister: () => undefined }
      : registerHooks(options)
}

const { createHook } = hooks

/** Of `async-hook-domain`. Hooks of OpenTelemetry have more callbacks. */
const isOfTap = (callbacks: HookCallbacks): boolean => Object.keys(callbacks).join() === 'init,destroy'

const inert: AsyncHook = { enable: () => inert, disable: () => inert }

hooks.createHook = callbacks => (isOfTap(callbacks) ? inert : createHook(callbacks))

const PROJECT = fileURLToPath(new URL('../..', import.meta.url))

/** What autoload reads of this project: folders of routes and plugins, and each `package.json`, most of which are missing. */
const isKept = (path: unknown): path is string =>
  typeof path === 'string' &&
  path.startsWith(PROJECT) &&
  /^((src\/)?package\.json|routes|plugins|src\/features)(\/|$)/.test(path.slice(PROJECT.length))

/** The same function, which reads each of these paths once. It has one set of options for each kind of path. */
const readOnce = <Read extends (...args: never[]) => Promise<unknown>>(read: Read): Read => {
  const results = new Map<string, ReturnType<Read>>()
  return ((...args: Parameters<Read>) => {
    const [path] = args as readonly unknown[]
    if (!isKept(path)) return read(...args)
    const result = results.get(path) ?? (read(...args) as ReturnType<Read>)
    results.set(path, result)
    return result
  }) as Read
}

Object.assign(files, { readdir: readOnce(files.readdir), readFile: readOnce(files.readFile) })
syncBuiltinESMExports()

Object.defineProperty(Function.prototype, Symbol.for('fastify.display-name'), {
  get(this: () => void) {
    return this.name
  },
  // As without the accessor: `fastify-plugin` names its functions.
  set(this: () => void, value: string) {
    Object.defineProperty(this, Symbol.for('fastify.display-name'), { value, writable: true })
  },
})
