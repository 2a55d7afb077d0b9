/** Builds the package: JavaScript and declarations in `dist/`, with the folders of the sources. */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')

/** TypeScript rewrites the extensions of imports, but not of other modules: threads, which are started by URL. */
const MODULE_URL = /new URL\('(\.[^']*)\.ts', import\.meta\.url\)/g

rmSync(DIST, { recursive: true, force: true })
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: ROOT, stdio: 'inherit' })

for (const name of globSync('{src,plugins,routes}/**/*.{js,css}', { cwd: ROOT }))
  cpSync(join(ROOT, name), join(DIST, name))

for (const name of globSync('**/*.js', { cwd: DIST })) {
  const file = join(DIST, name)
  const source = readFileSync(file, 'utf8')
  const built = source.replace(MODULE_URL, "new URL('$1.js', import.meta.url)")
  if (built !== source) writeFileSync(file, built)
}

// TypeScript leaves the specifiers of `imports` (`#core/…`) as they are. Node looks them up in the nearest package.json, which the built
// files also read the version from.
const { name, version, type, imports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const builtImports = Object.fromEntries(
  Object.entries<string>(imports).map(([name, target]) => [name, target.replace(/\.ts$/, '.js')]),
)
writeFileSync(
  join(DIST, 'package.json'),
  `${JSON.stringify({ name, version, type, imports: builtImports }, null, 2)}\n`,
)

for (const name of ['src/bin.js', 'client/bin.js']) chmodSync(join(DIST, name), 0o755)
