/**
 * Those who only verify tokens, with `OAUTH=off`: libraries of Python and Go find the keys by the metadata. Skipped where a language or its
 * package index is missing.
 */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { build, signUp, temporaryFolder } from '../support/build.ts'
import { newPem } from '../support/token-signers.ts'

const run = promisify(execFile)

/** Milliseconds. */
const LIMIT = 180_000

const PYTHON = `
import json, sys, urllib.request
import jwt
issuer, audience, token = sys.argv[1:]
with urllib.request.urlopen(issuer + "/.well-known/openid-configuration") as response:
    metadata = json.load(response)
key = jwt.PyJWKClient(metadata["jwks_uri"]).get_signing_key_from_jwt(token)
try:
    claims = jwt.decode(token, key, ["EdDSA", "ES256"], audience=audience, issuer=metadata["issuer"])
    print(claims["sub"])
except jwt.InvalidTokenError:
    print("refused")
`

const GO = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
)

func main() {
	ctx := context.Background()
	provider, err := oidc.NewProvider(ctx, os.Args[1])
	if err != nil {
		panic(err)
	}
	config := &oidc.Config{ClientID: os.Args[2], SupportedSigningAlgs: []string{"EdDSA", "ES256"}}
	verified, err := provider.Verifier(config).Verify(ctx, os.Args[3])
	if err != nil {
		fmt.Println("refused")
		return
	}
	fmt.Println(verified.Subject)
}
`

type Verify = (...args: readonly string[]) => Promise<string>

const python = async (): Promise<Verify> => {
  const folder = temporaryFolder(t)
  const install = ['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check']
  const bounds = ['--retries', '0', '--timeout', '10']
  await run('python3', [...install, ...bounds, 'pyjwt[crypto]', '--target', folder], { timeout: LIMIT })
  const options = { env: { ...process.env, PYTHONPATH: folder }, timeout: LIMIT }
  return async (...args) => (await run('python3', ['-c', PYTHON, ...args], options)).stdout.trim()
}

const go = async (): Promise<Verify> => {
  const cwd = temporaryFolder(t)
  writeFileSync(join(cwd, 'main.go'), GO)
  for (const command of ['mod init verifier', 'mod tidy', 'build -o verifier .'])
    await run('go', command.split(' '), { cwd, timeout: LIMIT })
  return async (...args) => (await run(join(cwd, 'verifier'), args, { timeout: LIMIT })).stdout.trim()
}

const LIBRARIES = { PyJWT: python, 'go-oidc': go }

const serve = async (test: Parameters<typeof build>[0], algorithm: 'EdDSA' | 'ES256') => {
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const env = { JWT_ALGORITHM: algorithm, JWT_PRIVATE_KEY: newPem(algorithm), PUBLIC_URL: issuer }
  const app = await build(test, { env })
  await app.listen({ host: '127.0.0.1', port })
  return { app, issuer }
}

const installed = await Promise.all(
  Object.entries(LIBRARIES).map(
    async ([name, install]) => [name, await install().catch(() => null)] as const,
  ),
)

for (const [name, verify] of installed) {
  const skip = verify === null && `needs ${name}, with its language and a package index`
  t.test(`${name} verifies tokens by the metadata`, { skip }, async t => {
    if (verify === null) return
    for (const algorithm of ['EdDSA', 'ES256'] as const) {
      const { app, issuer } = await serve(t, algorithm)
      const { token, id } = await signUp(app)
      t.equal(await verify(issuer, 'gatehouse', token), id, algorithm)
      t.equal(await verify(issuer, 'another', token), 'refused', 'another audience')
      const other = await serve(t, algorithm)
      const foreign = await signUp(other.app)
      const outcome = await verify(issuer, 'gatehouse', foreign.token).catch(() => 'refused')
      t.equal(outcome, 'refused', 'another key')
    }
  })
}
