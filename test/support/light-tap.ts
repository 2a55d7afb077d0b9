/**
 * Preloaded by test files (`.taprc`). It saves what tests with tap take besides their own work.
 *
 * tap adds a module to the `NODE_OPTIONS` of every process and thread that a test starts, to measure coverage and record the loaded
 * files. Without coverage nothing reads the records.
 *
 * tap follows every promise, timer and socket with a hook, to say which test an uncaught error belongs to. Without the hook such an error
 * still fails the file, with its stack.
 *
 * Fastify looks for the name of a plugin in all modules that were required: tap's make an app up to 15 ms slower. With a display name it
 * does not look.
 */
import hooks, { type AsyncHook, type HookCallbacks } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import processOnSpawn from 'process-on-spawn'

const OF_TAP = /"?--import=[^" ]*@tapjs\/processinfo\/[^" ]*"? ?/

/** Removes the module of tap, and keeps the options that a test sets. */
const lighten = (env: NodeJS.ProcessEnv): void => {
  const options = env.NODE_OPTIONS?.replace(OF_TAP, '') ?? ''
  if (options === '') delete env.NODE_OPTIONS
  else env.NODE_OPTIONS = options
}

if (process.env.TAP_DISABLE_COVERAGE === '1') {
  // Threads with options of their own take these from here.
  lighten(process.env)
  processOnSpawn.addListener(({ env }) => lighten(env))
}

const { createHook } = hooks

/** Of `async-hook-domain`. Hooks of OpenTelemetry have more callbacks. */
const isOfTap = (callbacks: HookCallbacks): boolean => Object.keys(callbacks).join() === 'init,destroy'

const inert: AsyncHook = { enable: () => inert, disable: () => inert }

hooks.createHook = callbacks => (isOfTap(callbacks) ? inert : createHook(callbacks))
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
