/**
 * Preloaded by test files (`.taprc`). tap adds a module to the `NODE_OPTIONS` of every process and thread that a test starts, to
 * measure coverage and record the loaded files: a sixth of the work of a command. Without coverage nothing reads the records.
 */
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
