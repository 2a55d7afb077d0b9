// Preloaded by every script of package.json. Plain JavaScript, because it must run on older versions of Node, which cannot load
// TypeScript.
import * as nodeModule from 'node:module'
import { fileURLToPath } from 'node:url'

const needed = '24.12'

/** Not the built package, whose code is in `dist/`. */
const isCheckout = !/\/dist\/src\/[^/]*$/.test(import.meta.url)

const [major, minor] = process.versions.node.split('.').map(Number)
const [neededMajor, neededMinor] = needed.split('.').map(Number)
if (major < neededMajor || (major === neededMajor && minor < neededMinor)) {
  process.stderr.write(
    `Gatehouse needs Node ${needed} or newer, this is Node ${process.versions.node}` +
      `${isCheckout ? ': run "npm ci" and then "npm start" (or "npm test"), which bring their own' : ''}.\n`,
  )
  process.exit(1)
}

// Caches compiled code between starts: about 5 % less time until the first response, and 11 MB less memory. Inside the project,
// because other users could place code in the shared temporary folder.
if (isCheckout) {
  const folder = fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url))
  nodeModule.enableCompileCache(folder)
  // Threads only read the environment variable. Without it each thread strips types again.
  process.env.NODE_COMPILE_CACHE ??= folder
}
