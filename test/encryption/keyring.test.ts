import t from 'tap'
import { DecryptionError, Keyring } from '#feature/encryption/keyring'

const CONTEXT = { purpose: 'totp', owner: 'ann' }
const TEXT = 'GEZDGNBVGY3TQOJQ – größer'

t.test('text is read back, and each encryption differs', async t => {
  const keyring = new Keyring('a'.repeat(32))
  const [one, other] = [keyring.encrypt(TEXT, CONTEXT), keyring.encrypt(TEXT, CONTEXT)]
  t.not(one, other)
  for (const encrypted of [one, other]) {
    t.match(encrypted, /^v1\.[0-9a-f]{16}\.[\w-]+$/)
    t.notMatch(encrypted, TEXT)
    t.strictSame(keyring.decrypt(encrypted, CONTEXT), { text: TEXT, isOutdated: false })
  }
})

t.test('previous keys decrypt, and their text is outdated', async t => {
  const encrypted = new Keyring('a'.repeat(32)).encrypt(TEXT, CONTEXT)
  const rotated = new Keyring('b'.repeat(32), ['a'.repeat(32)])
  t.strictSame(rotated.decrypt(encrypted, CONTEXT), { text: TEXT, isOutdated: true })
  t.strictSame(rotated.decrypt(rotated.encrypt(TEXT, CONTEXT), CONTEXT), { text: TEXT, isOutdated: false })
  t.throws(() => new Keyring('b'.repeat(32)).decrypt(encrypted, CONTEXT), {
    name: 'DecryptionError',
    message: /^The key [0-9a-f]{16} is not ENCRYPTION_KEY or ENCRYPTION_KEY_PREVIOUS$/,
  })
})

t.test('changed text, and text of another user or purpose, is refused', async t => {
  const keyring = new Keyring('a'.repeat(32))
  const encrypted = keyring.encrypt(TEXT, CONTEXT)
  const refused = (text: string, context = CONTEXT) =>
    t.throws(() => keyring.decrypt(text, context), DecryptionError, text)
  refused(encrypted, { ...CONTEXT, owner: 'bob' })
  refused(encrypted, { ...CONTEXT, purpose: 'other' })
  const start = encrypted.lastIndexOf('.') + 1
  for (let index = start; index < encrypted.length; index += 1) {
    const changed = encrypted[index] === 'A' ? 'Q' : 'A'
    // The unused bits of the last character are no part of the bytes.
    if (index === encrypted.length - 1) break
    refused(`${encrypted.slice(0, index)}${changed}${encrypted.slice(index + 1)}`)
  }
  for (const length of [0, 1, 12, 27]) refused(encrypted.slice(0, start) + 'A'.repeat(length))
  refused('')
  refused(encrypted.replace('v1', 'v2'))
})
