/** The image itself, and one container on a volume: a new one, and one with a database of 0.2.0. */
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageLock from '../../../package-lock.json' with { type: 'json' }
import { ADMIN_KEY, JWT_SECRET } from '../../support/build.ts'
import { milliseconds, Report } from '../instances/report.ts'
import { BASE, exitCode, FOLDER, IMAGE, inspect, podman, startContainer, stopContainer } from './podman.ts'
import { checkUpgrade, sqliteFile } from './release.ts'

const URL = 'http://127.0.0.1:3000'
const NAME = 'alone'

/** The user `node` of the image. */
const NODE = 1_000

/** Megabytes that the image may have, and milliseconds that it may take to stop: `docker stop` kills after 10 s. */
const SIZE_LIMIT = 300
const STOP_LIMIT = 10_000

const ENV = { ADMIN_KEY, JWT_SECRET, PUBLIC_URL: 'http://localhost:3000', MAIL_URL: 'off' }

const PRIVILEGES = { Uid: `${NODE}`, CapEff: '0000000000000000', CapBnd: '0000000000000000', NoNewPrivs: '1' }

const checkContents = async (report: Report): Promise<void> => {
  const [size = 0, base] = await Promise.all(
    [IMAGE, BASE].map(async name => Math.round(Number(await inspect(name, '.Size')) / 1e6)),
  )
  report.figure('size · of which the base', `${size} MB · ${base} MB`)
  report.expect(size <= SIZE_LIMIT, `the image has more than ${SIZE_LIMIT} MB`)
  const root = await podman('image', 'mount', IMAGE)
  const development = Object.entries(packageLock.packages).filter(([, entry]) => 'dev' in entry)
  const unwanted = ['package-lock.json', 'node_modules/.package-lock.json', '../root/.npmrc', 'test', '.git']
  for (const path of [...unwanted, ...development.map(([path]) => path)])
    if (existsSync(join(root, 'app', path))) report.failure(`the image contains ${path}`)
  await podman('image', 'unmount', IMAGE)
}

const checkPrivileges = async (report: Report): Promise<void> => {
  const text = readFileSync(`/proc/${await inspect(NAME, '.State.Pid')}/status`, 'utf8')
  for (const [name, value] of Object.entries(PRIVILEGES)) {
    const found = new RegExp(`^${name}:\\s+(\\w+)`, 'm').exec(text)?.[1]
    report.expect(found === value, `${name} of the process is ${found}`)
  }
  for (const path of ['/app', '/tmp', '/app/node_modules/.cache/node'])
    report.expect((await exitCode('exec', NAME, 'touch', `${path}/file`)) === 1, `${path} can be written`)
}

const checkHealth = async (report: Report): Promise<void> => {
  report.expect((await exitCode('healthcheck', 'run', NAME)) === 0, 'the health check of the image fails')
  const [, ...command] = JSON.parse(await inspect(NAME, 'json .Config.Healthcheck.Test'))
  const code = await exitCode('exec', '--env', 'PORT=1', NAME, ...command)
  report.expect(code === 1, `the health check is ${code} where nothing listens`)
}

const stop = async (report: Report): Promise<void> => {
  const { code, took } = await stopContainer(NAME)
  report.figure('SIGTERM to exit', milliseconds(took))
  report.expect(code === 0 && took < STOP_LIMIT, `it ended with ${code} after ${milliseconds(took)}`)
}

export const runSqlite = async (): Promise<Report> => {
  const report = new Report('The image, on a volume with SQLite')
  await checkContents(report)
  report.figure('start to ready, new volume', milliseconds(await startContainer(NAME, URL, ENV)))
  await checkPrivileges(report)
  await checkHealth(report)
  await stop(report)

  const data = join(FOLDER, 'data')
  mkdirSync(data)
  writeFileSync(join(data, 'gatehouse.db'), sqliteFile())
  for (const path of [data, join(data, 'gatehouse.db')]) chownSync(path, NODE, NODE)
  const took = await startContainer(NAME, URL, ENV, `${data}:/app/data`)
  report.figure('start to ready, volume of 0.2.0', milliseconds(took))
  await checkUpgrade('sqlite', URL, report)
  await stop(report)
  return report
}
