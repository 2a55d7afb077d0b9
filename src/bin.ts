#!/usr/bin/env node
/** The command `gatehouse` of the package: starts the service, or runs a command of the command line. */
import './preload.js'

const [command = 'start', ...options] = process.argv.slice(2)
if (command === 'start' && options.length === 0) await import('./server.ts')
else await import('./cli.ts')
