/**
 * `npm run dev`: restarts the service when its code changes. Node's `--watch` watches single files on Linux and loses those that an
 * editor replaces (nodejs/node#52879), so this watches folders.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { type FSWatcher, globSync, watch } from 'node:fs'

const CODE = ['src', 'plugins', 'routes']

/** Milliseconds without a change until the restart: editors make several changes per file. */
const QUIET = 100

const print = (text: string): void => void process.stderr.write(`${text}\n`)

let service: ChildProcess | null = null
let stopping = false
let restarting = false

const start = (): void => {
  restarting = false
  service = spawn(process.execPath, ['--import', './src/preload.js', 'src/server.ts'], { stdio: 'inherit' })
  service.once('exit', code => {
    service = null
    if (stopping) process.exit(code ?? 1)
    if (restarting) start()
    else print(`The service exited with ${code}: waiting for a change`)
  })
}

/** Stops the service gracefully; its exit starts the next one. */
const restart = (): void => {
  if (restarting) return
  if (service === null) return start()
  restarting = true
  service.kill('SIGTERM')
}

let watchers: FSWatcher[] = []
let timer: NodeJS.Timeout | undefined

/** Hidden files and backups of editors. */
const isTemporary = (name: string | null): boolean => name !== null && /^\.|~$/.test(name)

const watchFolders = (): void => {
  for (const watcher of watchers) watcher.close()
  const folders = CODE.flatMap(folder => globSync(`${folder}/**/`))
  watchers = folders.map(folder =>
    watch(folder, (_event, name) => {
      if (isTemporary(name)) return
      clearTimeout(timer)
      timer = setTimeout(() => {
        // Folders may have been added or removed.
        watchFolders()
        print('The code has changed: restarting')
        restart()
      }, QUIET)
    }).on('error', () => undefined),
  )
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    stopping = true
    // The terminal sends Ctrl-C to the service too, and a second signal would kill it.
    if (service === null) process.exit(0)
    else if (signal !== 'SIGINT' || !process.stdin.isTTY) service.kill(signal)
  })

watchFolders()
start()
