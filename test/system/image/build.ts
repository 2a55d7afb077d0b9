/** Builds the image from the Dockerfile in the folder's storage, on a base of Debian packages and this Node, as node:24-slim is one. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from '../../../scripts/postgres-server.ts'
import { print } from '../../support/experiment.ts'
import { BASE, FOLDER, IMAGE, STORAGE } from './podman.ts'

const PROJECT = join(import.meta.dirname, '..', '..', '..')

const BASE_FILE = `FROM scratch
ADD debian.tar /
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
 && groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node
`

const context = join(FOLDER, 'base')

/** Shows the output of a program only if it fails. */
const execute = (program: string, ...args: string[]): void => {
  try {
    execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 26 })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${program} failed:\n${stdout.slice(-5_000)}\n${stderr.slice(-5_000)}`)
  }
}

const build = (source: string, ...args: string[]): void =>
  execute('buildah', ...STORAGE, 'build', '--isolation', 'chroot', '--format', 'docker', ...args, source)

/** Without what Debian's slim images leave out, and without Perl, which `usrmerge` needs. */
const makeDebian = (): void => {
  const excluded = ['doc', 'man', 'info', 'locale'].map(part => `--dpkgopt=path-exclude=/usr/share/${part}/*`)
  const merged = ['--include=usr-is-merged', '--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr']
  execute('mmdebstrap', '--variant=minbase', ...merged, ...excluded, 'bookworm', join(context, 'debian.tar'))
}

const makeBase = (): void => {
  const npm = dirname(dirname(process.env.npm_execpath ?? ''))
  copyFileSync(process.execPath, join(context, 'node'))
  cpSync(npm, join(context, 'npm'), { recursive: true, dereference: true })
  writeFileSync(join(context, 'Dockerfile'), BASE_FILE)
  build(context, '--tag', BASE)
}

/** Installs with the npm settings of this machine, which a mirror of the registry may need, and leaves none of them in the image. */
const npmSettings = (): string[] => {
  const { npm_config_globalconfig: global = '', npm_config_userconfig: user = '' } = process.env
  const text = [global, user].map(file => (existsSync(file) ? readFileSync(file, 'utf8') : '')).join('\n')
  const file = join(FOLDER, 'npmrc')
  writeFileSync(file, text, { mode: 0o600 })
  const authorities = text.match(/^cafile ?= ?"?([^"\n]+)/m)?.[1]
  return [
    `--secret=id=npmrc,src=${file}`,
    ...(authorities === undefined ? [] : [`--volume=${authorities}:${authorities}:ro`]),
  ]
}

mkdirSync(context)
const begin = performance.now()
const seconds = () => Math.round((performance.now() - begin) / 1_000)
makeDebian()
makeBase()
print(`the base is built, after ${seconds()} s`)
const port = `PORT=${await freePort()}`
build(PROJECT, '--build-arg', `NODE_IMAGE=${BASE}`, '--build-arg', port, ...npmSettings(), '--tag', IMAGE)
print(`the image is built, after ${seconds()} s`)
