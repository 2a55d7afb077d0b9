/** Responses of hostile clients: never a 5xx, and never a session (docs/design.md, "Passkeys"). */
import t from 'tap'
import { build, logCapture, signUp } from '../support/build.ts'
import {
  creationOptions,
  ENV,
  postPasskey,
  postSignIn,
  register,
  requestOptions,
} from '../support/passkeys.ts'
import { createRandom, type Random } from '../support/random.ts'
import { inShortRun } from '../support/run.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'

const ROUNDS = inShortRun(100, 400)

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** Changes, removes or inserts some bytes. */
const mutate = (random: Random, text: string): string => {
  const bytes = [...Buffer.from(text, 'base64url')]
  for (let change = random.integer(1, 4); change > 0; change -= 1) {
    const at = random.integer(0, bytes.length)
    const kind = random.integer(0, 3)
    if (kind === 0) bytes.splice(at, random.integer(1, 40))
    else if (kind === 1) bytes.splice(at, 0, ...Array.from({ length: 9 }, () => random.integer(0, 255)))
    // The heads of CBOR: lengths of four and eight bytes, indefinite lengths, tags.
    else
      bytes[at] =
        random.pick([0x00, 0x1b, 0x5b, 0x7b, 0x9b, 0xbb, 0xbf, 0xdb, 0xff, random.integer(0, 255)]) ?? 0
  }
  const mutated = base64url(Uint8Array.from(bytes))
  return mutated === text || mutated === '' ? mutate(random, text) : mutated
}

t.test('mutated responses are refused, and are no errors of the service', async t => {
  const log = logCapture()
  const app = await build(t, { env: ENV, logStream: log.stream })
  const { authenticator } = await register(app, (await signUp(app)).token, { counter: null })
  const random = createRandom(9052)
  const statuses = new Map<string, number>()
  const count = (title: string) => statuses.set(title, (statuses.get(title) ?? 0) + 1)
  let user = await signUp(app)
  for (let round = 0; round < ROUNDS; round += 1) {
    // A user has 20 passkeys at most, and some changes do no harm.
    if (round % 20 === 0) user = await signUp(app)
    const made = new SoftwareAuthenticator().create((await creationOptions(app, user.token)).json())
    const { attestationObject } = made.response
    const created = await postPasskey(app, user.token, {
      credential: {
        ...made,
        response: { ...made.response, attestationObject: mutate(random, attestationObject) },
      },
    })
    count(`create ${created.statusCode}`)
    const used = authenticator.get((await requestOptions(app)).json())
    const field = random.pick(['clientDataJSON', 'authenticatorData', 'signature'] as const) ?? 'signature'
    const response = { ...used.response, [field]: mutate(random, used.response[field]) }
    count(`get ${(await postSignIn(app, { ...used, response })).statusCode}`)
  }
  // A changed name of a member, or an unread statement, does no harm: such a passkey is the user's own.
  const known = ['create 201', 'create 400', 'create 409', 'get 401']
  t.same(
    [...statuses.keys()].filter(status => !known.includes(status)),
    [],
  )
  t.ok((statuses.get('create 400') ?? 0) > ROUNDS / 2)
  t.equal(statuses.get('get 401'), ROUNDS)
  t.same(log.problems(), [])
})

t.test('client data that is no object, deep CBOR, and long lengths are refused', async t => {
  const log = logCapture()
  const app = await build(t, { env: ENV, logStream: log.stream })
  const user = await signUp(app)
  const { authenticator } = await register(app, user.token)
  const used = authenticator.get((await requestOptions(app)).json())
  for (const text of [
    'null',
    '7',
    '"x"',
    '[]',
    '{}',
    '{',
    '{"challenge":7}',
    '{"challenge":null}',
    '\u0000',
    '\ufeff{}',
  ]) {
    const response = { ...used.response, clientDataJSON: base64url(Buffer.from(text)) }
    t.equal((await postSignIn(app, { ...used, response })).statusCode, 401, text)
  }
  const lengths = [0x5a, 0x5b, 0x7a, 0x7b, 0x9a, 0x9b, 0xba, 0xbb].map(head =>
    Buffer.concat([Buffer.of(head), Buffer.alloc(8, 0xff)]),
  )
  const nested = [0x81, 0xa1, 0xc0, 0xd8].map(byte => Buffer.alloc(6_000, byte))
  for (const bytes of [...lengths, ...nested, Buffer.of(0xf6), Buffer.of(0x00)]) {
    const made = new SoftwareAuthenticator().create((await creationOptions(app, user.token)).json())
    const response = { ...made.response, attestationObject: base64url(bytes) }
    const refused = await postPasskey(app, user.token, { credential: { ...made, response } })
    t.equal(refused.statusCode, 400, bytes.subarray(0, 4).toString('hex'))
  }
  const [huge] = nested
  const made = new SoftwareAuthenticator().create((await creationOptions(app, user.token)).json(), {
    attStmt: new Map([['x', huge ?? Buffer.alloc(0)]]),
  })
  t.equal((await postPasskey(app, user.token, { credential: made })).statusCode, 400, 'longer than allowed')
  t.same(log.problems(), [])
})
