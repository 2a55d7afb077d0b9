/** Every kind of mail in every language, as mail programs need it: HTML that loads nothing, and a text with the same content. */
import t from 'tap'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import { MailComposer } from '#core/mail/composer'
import { DEFAULT_BRAND } from '#core/mail/frame'
import type { MailKind } from '#core/mail/kinds'
import { allFeatures } from '#features/built-in'

const HOSTILE = `"><img src=x onerror=alert(1)> {product} & www.evil.example`

/** The values of all kinds together: each takes its own. */
const VALUES = {
  token: 'canary-token_9f3ac1d0',
  newEmail: HOSTILE,
  isFirstConfirmation: true,
  removed: [
    { kind: 'password', count: 1 },
    { kind: 'sessions', count: 2 },
    { kind: 'ssh_keys', count: 1 },
  ],
  code: '12345678',
  isConfirmed: false,
  scopes: [HOSTILE],
  left: 1,
  provider: HOSTILE,
  organization: HOSTILE,
  member: HOSTILE,
  roles: [HOSTILE],
  days: 7,
  id: 'an-id',
  host: HOSTILE,
  reason: 'gone',
  text: HOSTILE,
}

const KINDS = Object.entries<MailKind>(
  Object.assign({}, ACCOUNT_MAILS, ...allFeatures().map(({ mails }) => mails)),
)

const SITE = {
  name: 'Acme <b> & Sons',
  host: 'accounts.example.com',
  publicUrl: 'https://accounts.example.com',
  webUrl: 'https://app.example.com',
  accountUrl: 'https://app.example.com/account?from=mail&again=1',
}

const BRAND = {
  ...DEFAULT_BRAND,
  supportUrl: 'https://help.example.com/?a=1&b=2',
  privacyUrl: 'https://example.com/privacy',
}

const COMPOSER = new MailComposer(
  Object.fromEntries(KINDS),
  { ...SITE, productName: SITE.name, brand: BRAND },
  error => {
    throw error
  },
)

const decode = (html: string): string =>
  html.replaceAll(
    /&(amp|lt|gt|quot|#39);/g,
    (_entity, name: 'amp') => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[name],
  )

/** What people read of HTML. */
const readable = (html: string): string =>
  decode(html.replace(/<head>[\s\S]*<\/head>/, '').replaceAll(/<[^>]*>/g, ' '))

const luminance = (color: string): number =>
  [1, 3, 5]
    .map(at => Number.parseInt(color.slice(at, at + 2), 16) / 255)
    .map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * ([0.2126, 0.7152, 0.0722][index] ?? 0), 0)

for (const locale of ['en', 'de'])
  for (const [name, kind] of KINDS)
    t.test(`${name} in ${locale}`, async t => {
      const { subject, text, html } = COMPOSER.compose(name, locale, [VALUES])
      t.match(html, `<html lang="${locale === 'de' && kind.de ? 'de' : 'en-GB'}">`)
      t.match(html, /<meta name="color-scheme" content="light dark">/)
      t.match(html, /@media \(prefers-color-scheme: dark\)/)
      t.equal(decode(/<title>([^<]+)<\/title>/.exec(html)?.[1] ?? ''), subject)
      t.equal(html.match(/<h1 /g)?.length, 1)
      t.notMatch(
        html,
        /<(?:img|script|link|iframe|form|object|svg)\b|url\(|@import|\son\w+="/i,
        'loads nothing',
      )
      for (const [, width = ''] of html.matchAll(/(?:max-width:|\bwidth=")(\d+)(?:px|")/g))
        t.ok(Number(width) <= 600, `${width} px`)
      for (const [table] of html.matchAll(/<table[^>]*>/g)) t.match(table, 'role="presentation"')
      t.notMatch(
        text + html,
        /\{(?:hours|days|product|organization|member|roles|provider|scopes|left)\}(?! &(?:amp;)? www)/,
      )
      t.notMatch(text + html, 'undefined')
      t.notMatch(subject, /[{}<\n]/)
      const shown = readable(html).replaceAll(/\s+/g, ' ')
      for (const line of text.split('\n').map(each => each.trim()))
        if (line !== '' && !/^https?:|:$|: https?:/.test(line)) t.ok(shown.includes(line), line)
      const link = kind.link?.(SITE, VALUES as never)
      if (link) {
        const linked = [...html.matchAll(/<a href="([^"]*)"/g)].map(([, url = '']) => decode(url))
        t.same(linked.slice(0, 2), [link, link], 'the button, and the address in full')
        t.ok(text.includes(`\n${link}\n`))
        t.ok(kind.en.button, 'the button has a text')
      }
      t.ok(text.includes(BRAND.supportUrl))
    })

t.test('the button can be read', async t => {
  const [light, dark] = [luminance(DEFAULT_BRAND.onFill), luminance(DEFAULT_BRAND.fill)]
  t.ok((light + 0.05) / (dark + 0.05) >= 4.5)
})

t.test('a subject has no places, which a user could fill', async t => {
  for (const [name, { en, de }] of KINDS) t.notMatch([en.subject, de?.subject].join(), /[{}]/, name)
})
