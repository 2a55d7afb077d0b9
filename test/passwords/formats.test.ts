/**
 * Imported hash formats (import; docs/design.md, "Account life cycle"): which are accepted, that they verify, and that none makes a sign-in
 * fail or wait.
 */

import { hashSync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import fc from 'fast-check'
import t from 'tap'
import { hashViolation, isAmbiguous } from '#core/passwords/formats'
import { compare } from '#core/passwords/hashing-thread'
import { isWeak } from '#core/passwords/our-hash'
import { codePoint } from '../support/code-points.ts'
import { smallHashing } from '../support/hashing-threads.ts'
import { base64, scryptPhc } from '../support/scrypt-phc.ts'

const RFC_7914 =
  '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887'

const LONG = 'x'.repeat(200)
const ACCENTED = 'correct horse é battery'

/** As libraries of .NET write it. */
const PADDED = hashSync('password', { memoryCost: 64, timeCost: 1, salt: Buffer.alloc(16, 5) })
  .split('$')
  .map((part, index) => (index < 4 ? part : part.padEnd(Math.ceil(part.length / 4) * 4, '=')))
  .join('$')

/** From each format's own tests or documentation. */
const VECTORS: Record<string, readonly [string, string]> = {
  'argon2i, version 16 (phc-winner-argon2)': [
    'password',
    '$argon2i$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ',
  ],
  'argon2id (phc-winner-argon2)': [
    'password',
    '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
  ],
  argon2d: ['password', hashSync('password', { algorithm: 0 as never, memoryCost: 64, timeCost: 1 })],
  'bcrypt 2a (crypt_blowfish)': ['U*U', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
  'bcrypt 2a, 72 bytes and more (crypt_blowfish)': [
    '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored',
    '$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui',
  ],
  'bcrypt 2y, as 2a': ['U*U', '$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
  'bcrypt 2b': ['é\u{1f600}', bcrypt.hashSync('é\u{1f600}', 4)],
  'scrypt (passlib)': [
    'password',
    '$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E',
  ],
  'scrypt (RFC 7914 §12)': [
    'pleaseletmein',
    `$scrypt$ln=14,r=8,p=1$${base64(Buffer.from('SodiumChloride'))}$${base64(Buffer.from(RFC_7914, 'hex'))}`,
  ],
  'scrypt, padded': [
    'password',
    '$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q==$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E=',
  ],
  'scrypt, passlib’s other base64': [
    'password',
    '$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD.iCs5E',
  ],
  'PBKDF2 with SHA-1 (passlib)': [
    ACCENTED,
    '$pbkdf2$1000$fm9tzXnv3fv/nxNCaA0hZA$46hrO3rw3CyaZl7KMzLf9W.r8iI',
  ],
  'PBKDF2 with SHA-256 (passlib)': [
    ACCENTED,
    '$pbkdf2-sha256$1000$mpOyNqbUeq/1/v./lxLiPA$zfNa3pKHcwcVEhKd.LVBX5eHlAGHxRmYpa4ZzY3AGV0',
  ],
  'PBKDF2 with SHA-512 (passlib)': [
    ACCENTED,
    '$pbkdf2-sha512$1000$kHLOWas1xpgT4hzjXCultA$OPXcJDujjIdwqBe6ccqcx.5oWq3O0n8JuhouOUAhjQIZNfn8.vi2Wd/b0BcjbFs4AQBjBm84Z67IhAQqzAA52A',
  ],
  'PBKDF2 in PHC form, padded (Python)': [
    ACCENTED,
    '$pbkdf2-sha512$i=1000,l=64$MP/PE0K2ZzXFQnimPlMkIw==$zs6Ik0EKWRpCa8ZLB79SuMOZyyYZ3p4no/bLknJPkCWhM9fzoKyCuX/oG3D9WvGfJAw2VAhkoejvWNlAKFb/8w==',
  ],
  'phpass of WordPress (passlib)': [ACCENTED, '$P$6e1kHpPSQfai.3VANQotFvZ/cfTaEt1'],
  'phpass of phpBB (passlib)': [ACCENTED, '$H$6jPegf7oX0/yZDw36d.1hRgtGCesYC0'],
  'SHA-256 of crypt (passlib)': [
    ACCENTED,
    '$5$rounds=1234$g4OEResXFTjrNOSJ$sI51tdXzmBEvVgal8Ubquly7ZSbbW6zMCiQqAN7LMx7',
  ],
  'SHA-512 of crypt (passlib)': [
    ACCENTED,
    '$6$rounds=1001$a$qO74KIiyIfxMrU4bCFwBFfnhP0RI0b/1Fz4Orqe3TPzhFhw21vROHb9zUnuSt6xyLUC/rOcbeJ7bm/w7c0ds4/',
  ],
  'WordPress 6.8 (Python)': [ACCENTED, '$wp$2y$04$J1B0F4KoH2YaIwAmVgXd4Oleb9O1lThxxlWM0L4QjsVFF4RR.hkua'],
  'ASP.NET Identity with SHA-256 (Python)': [
    ACCENTED,
    '{aspnet}AQAAAAEAAAPoAAAAECq3tGZVVM23gYUfrNmqyWaQ4ufmW8njU06asEXhs+gjyVlaHSyWcpF+OVPTCGjUYw==',
  ],
  'ASP.NET Identity with SHA-512 (Python)': [
    ACCENTED,
    '{aspnet}AQAAAAIAAAPoAAAAEDAIxjO6IJBHH9Jr8I41WT0F0zxEmqIXIb4gZCCROQpRsMIJkF+frMlXnSjWqIpXaw==',
  ],
  'ASP.NET Identity with SHA-1 (Python)': [
    ACCENTED,
    '{aspnet}AQAAAAAAAAPoAAAAEOQMShSSfORft2GaLZzRMxlRMaTwjF4nQCmz6Zi+o3mOoU6+RXYdmiYeu/NpsCI0Mw==',
  ],
  'ASP.NET Identity 2 (Python)': [
    ACCENTED,
    '{aspnet}ADD/zxNCtmc1xUJ4pj5TJCNRxQa00naznNUZ56DQZl0Qsb4FjmChSkbaXE1AlDLmXg==',
  ],
  'a long password with SHA-512 of crypt': [
    LONG,
    '$6$rounds=1000$kojvPnVg9SvSOPwm$gK3UHqBKLrZb2gI82KpDkfHMg.E9fguyPXpJaEeeuQzjgYXZoKg.lk7JpiL94aWo2oaH3PdKNs6TNBFqqibWU.',
  ],
  'a long password with SHA-256 of crypt': [
    LONG,
    '$5$rounds=1000$FPnafxyisnkD9rOu$64MjBL4jznnlZx7T2eDDkOkdaghYv7yOiJpYcWQj2wD',
  ],
  'a long password with phpass': [LONG, '$P$5PfqPrxJ339/XzgIh4rPaSzJ0mngWx1'],
  'PBKDF2 of Django with SHA-256': [
    ACCENTED,
    'pbkdf2_sha256$1000$a9Zs0ltSaltOfDjango11$TARdeWAY6uDUl3Mnu/Hb6Vc+BxEuDeQibR7DIA61dYY=',
  ],
  'PBKDF2 of Django with SHA-1': [
    ACCENTED,
    'pbkdf2_sha1$1000$a9Zs0ltSaltOfDjango11$9Kom/H8JdDmoganzxGp7imkQ/Vw=',
  ],
  'bcrypt with SHA-256 of Django': [
    ACCENTED,
    'bcrypt_sha256$$2b$04$YyHyGygg2Tv6PBLQlIz4G.pNshKEYaWsVBYJ42IKZdmyrDq2dTkxu',
  ],
  'argon2id, padded': ['password', PADDED],
  "Firebase's scrypt (its own documentation)": [
    'user1password',
    '$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
  ],
}

for (const [title, [password, encoded]] of Object.entries(VECTORS)) {
  t.test(`${title} verifies in a thread, and needs a rehash unless it is as strong as a new one`, async t => {
    t.equal(hashViolation(encoded), null)
    const hashing = smallHashing(t)
    t.equal(await hashing.verify(password, encoded), true)
    t.equal(await hashing.verify(`x${password}`, encoded), false)
    t.equal(await hashing.verify('', encoded), false)
    t.equal(isWeak(encoded), !encoded.startsWith('$argon2id$v=19$m=65536,t=2'))
  })
}

const MALFORMED = 'is malformed'
const UNKNOWN =
  'must be a hash of argon2, bcrypt, scrypt, PBKDF2, phpass or crypt ($5$, $6$), in a form that the documents name'
const KEYED = 'needs a secret key to verify (keyid), which the service does not have'
const COSTLY = 'costs too much to verify'

/** Salt and digest of sixteen bytes. */
const TAIL = '$c29tZXNhbHRzb21lc2FsdA$c29tZXNhbHRzb21lc2FsdA'
const BCRYPT_TAIL = 'CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'

const REFUSED: readonly (readonly [string, string])[] = [
  ['', UNKNOWN],
  ['password', UNKNOWN],
  ['5f4dcc3b5aa765d61d8327deb882cf99', UNKNOWN],
  ['$1$salt$qJH7.N4xYta3aEG/dfqo/0', UNKNOWN],
  [`$2x$05$${BCRYPT_TAIL}`, UNKNOWN],
  [`$argon2x$v=19$m=64,t=1,p=1${TAIL}`, UNKNOWN],
  [' $2a$05$', UNKNOWN],
  ['$argon2id$', MALFORMED],
  ['$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ', MALFORMED],
  [`$argon2id$v=19$m=64,t=0,p=1${TAIL}`, MALFORMED],
  [`$argon2id$v=19$m=7,t=1,p=1${TAIL}`, MALFORMED],
  [`$argon2id$v=19$m=99999999999999999999,t=1,p=1${TAIL}`, MALFORMED],
  [`$argon2id$v=19$m=64,t=1,p=1$${'A'.repeat(600)}$c29tZXNhbHRzb21lc2FsdA`, MALFORMED],
  [`$argon2id$v=19$m=262145,t=1,p=1${TAIL}`, COSTLY],
  [`$argon2id$v=19$m=4294967295,t=1,p=1${TAIL}`, COSTLY],
  [`$argon2i$v=19$m=1024,t=17,p=1${TAIL}`, COSTLY],
  [`$argon2d$v=19$m=1024,t=1,p=17${TAIL}`, COSTLY],
  [`$argon2id$v=19$m=64,t=1,p=1,keyid=AAAA${TAIL}`, KEYED],
  [`$argon2id$v=18$m=64,t=1,p=1${TAIL}`, MALFORMED],
  [`$argon2id$v=19$m=64,t=1${TAIL}`, MALFORMED],
  [`$argon2id$v=19$m=64,t=1,p=9${TAIL}`, MALFORMED],
  [`$argon2id$v=19$m=64,t=1,p=1${TAIL}=`, MALFORMED],
  [`$argon2id$v=19$m=64,t=1,p=1${TAIL.slice(0, -1)}B`, MALFORMED],
  ['$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$', MALFORMED],
  ['$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$AAAA', MALFORMED],
  ['$argon2id$v=19$m=64,t=1,p=1$c29tZQ$c29tZXNhbHRzb21lc2FsdA', MALFORMED],
  [`$2b$03$${BCRYPT_TAIL}`, MALFORMED],
  [`$2b$5$${BCRYPT_TAIL}`, MALFORMED],
  [`$2b$05$${BCRYPT_TAIL}x`, MALFORMED],
  [`$2b$05$${BCRYPT_TAIL.slice(1)}!`, MALFORMED],
  [`$2b$15$${BCRYPT_TAIL}`, COSTLY],
  [`$2b$31$${BCRYPT_TAIL}`, COSTLY],
  [`$scrypt$ln=0,r=8,p=1${TAIL}`, MALFORMED],
  [`$scrypt$ln=14,r=8,p=0${TAIL}`, MALFORMED],
  [`$scrypt$ln=16,r=1,p=1${TAIL}`, MALFORMED],
  [`$scrypt$n=14,r=8,p=1${TAIL}`, MALFORMED],
  ['$scrypt$ln=14,r=8,p=1$$c29tZXNhbHRzb21lc2FsdA', MALFORMED],
  ['$scrypt$ln=14,r=8,p=1$c29tZXNhbHRzb21lc2FsdA$', MALFORMED],
  [`$scrypt$ln=14,r=8,p=1${TAIL}AAA`, MALFORMED],
  ['$scrypt$ln=14,r=8,p=1$c29tZXNhbHRzb$c29tZXNhbHRzb21lc2FsdA', MALFORMED],
  [`$scrypt$ln=19,r=8,p=1${TAIL}`, COSTLY],
  [`$scrypt$ln=99,r=8,p=1${TAIL}`, COSTLY],
  [`$scrypt$ln=1,r=9999,p=1${TAIL}`, COSTLY],
  [`$scrypt$ln=4,r=8,p=17${TAIL}`, COSTLY],
  [`$scrypt$ln=18,r=8,p=16${TAIL}`, COSTLY],
  ['$pbkdf2-sha256$29000$c2FsdA$aGFzaA', MALFORMED],
  [`$pbkdf2-md5$1000${TAIL}`, MALFORMED],
  [`$pbkdf2-sha256$0${TAIL}`, MALFORMED],
  [`$pbkdf2-sha256$-1${TAIL}`, MALFORMED],
  [`$pbkdf2-sha256$1000${TAIL}AAA`, MALFORMED],
  [`$pbkdf2-sha256$20000000${TAIL}`, COSTLY],
  [`$pbkdf2-sha512$i=9999999999${TAIL}`, COSTLY],
  ['pbkdf2_sha256$1000$$TARdeWAY6uDUl3Mnu/Hb6Vc+BxEuDeQibR7DIA61dYY=', MALFORMED],
  ['pbkdf2_sha256$20000000$salt$TARdeWAY6uDUl3Mnu/Hb6Vc+BxEuDeQibR7DIA61dYY=', COSTLY],
  ['{aspnet}AQAAAAEAAAPo', MALFORMED],
  [
    `{aspnet}${Buffer.concat([Buffer.from([1, 0, 0, 0, 9]), Buffer.alloc(60)]).toString('base64')}`,
    MALFORMED,
  ],
  [
    `{aspnet}${Buffer.concat([Buffer.from([2, 0, 0, 0, 1]), Buffer.alloc(60)]).toString('base64')}`,
    MALFORMED,
  ],
  ['$P$Z2ztRkzvLGlTQ4ivQZ8YNrJnN3HnkC0', COSTLY],
  ['$P$42ztRkzvLGlTQ4ivQZ8YNrJnN3HnkC0', MALFORMED],
  ['$P$B2ztRkzvLGlTQ4ivQZ8YNrJnN3HnkC', MALFORMED],
  ['$5$rounds=999$salt$sI51tdXzmBEvVgal8Ubquly7ZSbbW6zMCiQqAN7LMx7', MALFORMED],
  ['$5$rounds=800001$salt$sI51tdXzmBEvVgal8Ubquly7ZSbbW6zMCiQqAN7LMx7', COSTLY],
  ['$6$salt$sI51tdXzmBEvVgal8Ubquly7ZSbbW6zMCiQqAN7LMx7', MALFORMED],
  [`$wp$2y$03$${BCRYPT_TAIL}`, MALFORMED],
  [`$wp$2y$15$${BCRYPT_TAIL}`, COSTLY],
  [`bcrypt_sha256$$2b$15$${BCRYPT_TAIL}`, COSTLY],
  ['$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=$42xEC+ixf3L2lw==$lSrf', MALFORMED],
  [`$fbscrypt$v=1,n=22,r=8,p=1,ss=Bw==,sk=${'A'.repeat(43)}=$42xEC+ixf3L2lw==$${'A'.repeat(43)}=`, COSTLY],
  [
    `$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=${'A'.repeat(43)}=$42xEC+ixf3L2lw==$${'A'.repeat(86)}==`,
    MALFORMED,
  ],
]

t.test('unknown formats, malformed and too expensive hashes are rejected and never match', async t => {
  for (const [encoded, failure] of REFUSED) {
    t.equal(hashViolation(encoded), failure, encoded.slice(0, 40))
    t.notOk(compare('password', encoded), `${encoded.slice(0, 40)} in the store`)
  }
})

t.test('D13: bits of a bcrypt hash that no byte has do not matter', async t => {
  const digits = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
  const encoded = bcrypt.hashSync('password', 4)
  /** The hash with the other characters at a position that differ in these bits alone. */
  const variants = (at: number, bits: number) =>
    [...digits]
      .filter((_, value) => value >> bits === digits.indexOf(encoded[at] ?? '') >> bits)
      .map(character => encoded.slice(0, at) + character + encoded.slice(at + 1))
  t.equal(variants(28, 4).length, 16)
  t.equal(variants(59, 2).length, 4)
  for (const variant of [...variants(28, 4), ...variants(59, 2)]) {
    t.equal(hashViolation(variant), null)
    t.equal(compare('password', variant), true, variant)
    t.equal(compare('another', variant), false)
  }
})

t.test('parameters at the bounds are accepted', async t => {
  const taken = [
    `$argon2id$v=19$m=262144,t=16,p=16${TAIL}`,
    `$2b$14$${BCRYPT_TAIL}`,
    `$scrypt$ln=18,r=8,p=4${TAIL}`,
    `$scrypt$ln=13,r=8,p=16${TAIL}`,
    `$scrypt$ln=1,r=1,p=1${TAIL}`,
  ]
  for (const encoded of taken) t.equal(hashViolation(encoded), null, encoded)
  t.equal(compare('x', `$scrypt$ln=18,r=8,p=1${TAIL}`), false, 'its memory is allowed')
  const widest = scryptPhc('password', Buffer.alloc(16, 7), 2, 32, 16)
  t.equal(compare('password', widest), true)
})

t.test('a password that others match too does not replace the hash', async t => {
  const [, pbkdf2] = VECTORS['PBKDF2 of Django with SHA-256'] as readonly [string, string]
  t.equal(compare(`${ACCENTED}\0`, pbkdf2), true, 'HMAC fills keys with zeros')
  t.equal(isAmbiguous(`${ACCENTED}\0`, pbkdf2), true)
  t.equal(isAmbiguous(ACCENTED, pbkdf2), false)
  const [, wordpress] = VECTORS['WordPress 6.8 (Python)'] as readonly [string, string]
  t.equal(isAmbiguous(LONG, wordpress), false, 'bcrypt reads a digest')
})

t.test('bcrypt accepts any password: NUL, and more than 72 bytes', async t => {
  const encoded = bcrypt.hashSync('a\0b', 4)
  t.equal(compare('a\0b', encoded), true)
  for (const password of ['a', 'a\0', '\0', 'x'.repeat(128), '\u{1f600}'.repeat(128), '\ud800']) {
    t.equal(compare(password, encoded), false)
  }
})

const almost = fc.oneof(
  fc.string(),
  fc
    .tuple(fc.constantFrom('$argon2id$v=19$m=64,t=1,p=1', '$2b$04', '$scrypt$ln=4,r=8,p=1'), fc.string())
    .map(parts => parts.join('$')),
  fc
    .tuple(fc.constantFrom(...Object.values(VECTORS).map(([, encoded]) => encoded)), fc.nat(90), fc.string())
    .map(([encoded, at, text]) => encoded.slice(0, at) + text + encoded.slice(at + text.length)),
  fc
    .tuple(fc.nat(40), fc.nat(9_999), fc.nat(40))
    .map(([ln, r, p]) => `$scrypt$ln=${ln},r=${r},p=${p}${TAIL}`),
)

t.test('malformed hashes never make the comparison throw', async t => {
  const everyCase = () =>
    fc.assert(
      fc.property(almost, fc.string({ unit: codePoint }), (encoded, password) => {
        const failure = hashViolation(encoded)
        // Allowed but expensive: that these do not throw is shown above.
        const costly =
          /m=\d{4,}|\$(0[6-9]|1\d)\$|\bl?n=(1[2-9]|[2-9]\d)|\$(i=|rounds=)?\d{5,}\$|^\$[PH]\$[B-z]|^{aspnet}/.test(
            encoded,
          )
        if (costly) return true
        const matches = compare(password, encoded)
        // An accepted hash is one that can be compared (CASES D13).
        return (matches === null) === (failure !== null)
      }),
      { numRuns: 500 },
    )
  t.doesNotThrow(everyCase)
})
