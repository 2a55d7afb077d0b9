// Plain JavaScript on purpose: an older Node cannot load TypeScript, so this check has to be readable by it. It is
// preloaded by every script of package.json, before the first .ts file.
const needed = 24

if (Number.parseInt(process.versions.node, 10) < needed) {
  process.stderr.write(
    `Gatehouse needs Node ${needed} or newer, this is Node ${process.versions.node}: ` +
      'run "npm ci" and then "npm start" (or "npm test"), which bring their own.\n',
  )
  process.exit(1)
}
