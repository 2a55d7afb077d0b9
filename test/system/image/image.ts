/**
 * Builds the Dockerfile with buildah, and runs the image with podman, PostgreSQL and Caddy (docs/operations.md, "Containers").
 *
 * Both steps have mounts and processes of their own, which end with them, and the second one a network, in which the ports 80, 443
 * and 3000 are free. Everything else is in one folder.
 *
 * `npm run test:image`
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { basename, delimiter, join } from 'node:path'
import { temporaryFolder } from '../../support/build.ts'
import { print, startExperiment } from '../../support/experiment.ts'

/** Milliseconds that the whole run may take. */
const LIMIT = 1_200_000

/** The Debian packages buildah, podman, runc, mmdebstrap, caddy, iproute2, util-linux and mount. */
const PROGRAMS = ['buildah', 'podman', 'runc', 'mmdebstrap', 'caddy', 'ip', 'unshare', 'mount']

const NAMESPACES = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc']

const OVERLAY = 'mkdir a b c d && mount -t overlay overlay -o lowerdir=a,upperdir=b,workdir=c d'

process.env.PATH += ':/usr/sbin:/sbin'

/** @returns why the image cannot be built and run here, `null` if it can. */
const obstacle = (cwd: string): string | null => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'containers need Linux and root'
  if (process.env.npm_execpath === undefined) return 'the base contains the npm that runs this'
  const folders = process.env.PATH?.split(delimiter) ?? []
  const missing = PROGRAMS.filter(program => !folders.some(folder => existsSync(join(folder, program))))
  if (missing.length > 0) return `these programs are missing: ${missing.join(', ')}`
  const args = [...NAMESPACES, '--net', 'sh', '-c', OVERLAY]
  const { status, stderr } = spawnSync('unshare', args, { cwd, encoding: 'utf8' })
  return status === 0 ? null : `namespaces or overlay mounts are not permitted: ${stderr.trim()}`
}

const { context, cleanUp, abandon } = startExperiment(LIMIT)

/** Removes the cgroups of containers, which have ended. */
const removeCgroups = (name: string): void =>
  void spawnSync('find', [
    '/sys/fs/cgroup',
    '-depth',
    '-type',
    'd',
    '-path',
    `*/${name}*`,
    '-exec',
    'rmdir',
    '{}',
    '+',
  ])

/** Runs a step in namespaces. @returns its exit code. */
const run = async (step: string, namespaces: readonly string[], folder: string): Promise<number | null> => {
  const args = [...namespaces, process.execPath, join(import.meta.dirname, step)]
  const child = spawn('unshare', args, { env: { ...process.env, TMPDIR: folder }, stdio: 'inherit' })
  const exited = once(child, 'exit')
  context.teardown(async () => {
    if (child.exitCode !== null) return
    // The first process of the namespace ends after all others, and `unshare` after it.
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
    for (const pid of children.split(' ').filter(Boolean)) process.kill(Number(pid), 'SIGKILL')
    await exited
  })
  return (await exited)[0]
}

try {
  const folder = temporaryFolder(context)
  // PostgreSQL, which runs as another user, has its folder inside.
  chmodSync(folder, 0o711)
  context.teardown(() => removeCgroups(basename(folder)))
  const reason = obstacle(folder)
  if (reason === null) {
    const built = await run('build.ts', NAMESPACES, folder)
    process.exitCode = built === 0 ? ((await run('run.ts', [...NAMESPACES, '--net'], folder)) ?? 1) : 1
  } else print(`skipped: ${reason}`)
  await cleanUp()
} catch (error) {
  abandon(error)
}
