/** Containers of the image, with the restrictions of compose.yaml, in the network of this process. */
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../support/until.ts'

/** The folder of the run, as `image.ts` sets it. */
export const FOLDER = tmpdir()

/** The names of the image and of its base. */
export const IMAGE = 'localhost/gatehouse'
export const BASE = 'localhost/node:24-slim'

/** Options of buildah and podman. The driver `vfs`, which needs no feature of the kernel, copies the image for each container. */
export const STORAGE: readonly string[] = [
  ...['--root', join(FOLDER, 'storage'), '--runroot', join(FOLDER, 'run'), '--storage-driver', 'overlay'],
]

const OPTIONS = [
  ...['--tmpdir', join(FOLDER, 'tmp'), '--runtime', 'runc', '--cgroup-manager', 'cgroupfs'],
  ...['--events-backend', 'none'],
]

const RESTRICTIONS = [
  ...[
    '--cgroup-parent',
    `/${basename(FOLDER)}`,
    '--network',
    'host',
    '--read-only',
    '--read-only-tmpfs=false',
  ],
  ...['--cap-drop', 'all', '--security-opt', 'no-new-privileges'],
  ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'],
]

/** Milliseconds until a container that is not ready counts as failed. */
const START_LIMIT = 60_000

/** As stop_grace_period of compose.yaml. */
const GRACE_SECONDS = '20'

/** @returns standard output. */
export const podman = async (...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)('podman', [...STORAGE, ...OPTIONS, ...args])).stdout.trim()

/** @returns a value of an image or container, such as `.State.Pid`. */
export const inspect = (name: string, value: string): Promise<string> =>
  podman('inspect', '--format', `{{${value}}}`, name)

/** @returns the exit code of podman, which is that of the program for `exec`. */
export const exitCode = (...args: readonly string[]): Promise<number> =>
  podman(...args).then(
    () => 0,
    error => error.code,
  )

/** Creates and starts a container. @returns milliseconds from the start until `/ready` is 200. @throws {Error} with the log. */
export const startContainer = async (
  name: string,
  url: string,
  env: Readonly<Record<string, string>>,
  ...volumes: readonly string[]
): Promise<number> => {
  const settings = Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`])
  const mounts = volumes.flatMap(volume => ['--volume', volume])
  await podman('create', '--name', name, ...RESTRICTIONS, ...settings, ...mounts, IMAGE)
  const begin = performance.now()
  await podman('start', name)
  const ready = () =>
    fetch(`${url}/ready`).then(
      ({ status }) => status,
      () => 0,
    )
  const status = await until(ready, found => found === 200, START_LIMIT)
  if (status !== 200) throw new Error(`${name} is not ready: ${status}\n${await podman('logs', name)}`)
  return performance.now() - begin
}

/** Sends SIGTERM, after {@link GRACE_SECONDS} SIGKILL, and removes the container. @returns its exit code, and the milliseconds it took. */
export const stopContainer = async (name: string): Promise<{ code: number; took: number }> => {
  const begin = performance.now()
  await podman('stop', '--time', GRACE_SECONDS, name)
  const took = performance.now() - begin
  const code = Number(await inspect(name, '.State.ExitCode'))
  await podman('rm', '--volumes', name)
  return { code, took }
}
