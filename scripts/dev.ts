/**
 * `npm run dev`: the service, started anew at every change of its code. Node's `--watch` on Linux watches each file, and loses
 * one that an editor replaces by another (nodejs/node#52879); a folder tells of whatever happens in it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { type FSWatcher, globSync, watch } from 'node:fs'

const CODE = ['src', 'plugins', 'routes']

/** Milliseconds without a change until the service is started anew: an editor makes several for each file. */
const QUIET = 100

const tell = (text: string): void => void process.stderr.write(`${text}\n`)

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
    else tell(`The service has ended with ${code}: waiting for a change`)
  })
}

/** The old one stops as it does in production; the new one starts when it has. */
const restart = (): void => {
  if (restarting) return
  if (service === null) return start()
  restarting = true
  service.kill('SIGTERM')
}

let watchers: FSWatcher[] = []
let timer: NodeJS.Timeout | undefined

/** What editors keep beside a file. */
const isByTheWay = (name: string | null): boolean => name !== null && /^\.|~$/.test(name)

const watchFolders = (): void => {
  for (const watcher of watchers) watcher.close()
  const folders = CODE.flatMap(folder => globSync(`${folder}/**/`))
  watchers = folders.map(folder =>
    watch(folder, (_event, name) => {
      if (isByTheWay(name)) return
      clearTimeout(timer)
      timer = setTimeout(() => {
        // Some may be new, some gone.
        watchFolders()
        tell('The code has changed: starting anew')
        restart()
      }, QUIET)
    }).on('error', () => undefined),
  )
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    stopping = true
    // Ctrl-C reaches the service too, and twice is an end at once.
    if (service === null) process.exit(0)
    else if (signal !== 'SIGINT' || !process.stdin.isTTY) service.kill(signal)
  })

watchFolders()
start()
