/** Every kind of mail in every language, as mail programs need it: HTML that loads nothing, and a text with the same content. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { brandColors } from '#base/brand-colors'
import { readTextFiles } from '#base/text-files'
import { Languages } from '#base/texts'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import { MailComposer } from '#core/mail/composer'
import { DEFAULT_BRAND, type MailBrand } from '#core/mail/frame'
import type { MailKind } from '#core/mail/kinds'
import { allFeatures } from '#features/built-in'
import { launchBrowser, VIEWS, violationsOf, withoutBrowser } from '../support/browser.ts'
import { build, temporaryFolder } from '../support/build.ts'
import { mailbox } from '../support/mailbox.ts'
import { recipient } from '../support/smtp.ts'

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

/** The longest values, without spaces. */
const LONG = {
  newEmail: `${'e'.repeat(64)}@${'d'.repeat(180)}.example`,
  organization: 'o'.repeat(100),
  member: `${'m'.repeat(64)}@${'d'.repeat(180)}.example`,
  provider: 'p'.repeat(64),
  host: `${'h'.repeat(60)}.example`,
  roles: ['r'.repeat(64)],
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

const languages = new Languages(readTextFiles('examples/languages').languages)

/** A blue pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNQiXj1HwAEKAJYQmTGWQAAAABJRU5ErkJggg==',
  'base64',
)

const BRAND = {
  ...DEFAULT_BRAND,
  logo: { content: PNG, ratio: 1 },
  supportUrl: 'https://help.example.com/?a=1&b=2',
  privacyUrl: 'https://example.com/privacy',
}

const composerWith = (brand: Partial<MailBrand> = {}) =>
  new MailComposer(
    Object.fromEntries(KINDS),
    { ...SITE, productName: SITE.name, brand: { ...BRAND, ...brand }, languages },
    error => {
      throw error
    },
  )

const COMPOSER = composerWith()

const LANGUAGES = ['en', 'de', 'fr']

const decode = (html: string): string =>
  html.replaceAll(
    /&(amp|lt|gt|quot|#39);/g,
    (_entity, name: 'amp') => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[name],
  )

/** What people read of HTML. */
const readable = (html: string): string =>
  decode(html.replace(/<head>[\s\S]*<\/head>/, '').replaceAll(/<[^>]*>/g, ' '))

/** French has spaces that do not break. */
const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ')

const luminance = (color: string): number =>
  [1, 3, 5]
    .map(at => Number.parseInt(color.slice(at, at + 2), 16) / 255)
    .map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * ([0.2126, 0.7152, 0.0722][index] ?? 0), 0)

for (const locale of LANGUAGES)
  for (const [name, kind] of KINDS)
    t.test(`${name} in ${locale}`, async t => {
      const { subject, text, html } = COMPOSER.compose(name, locale, [VALUES])
      t.match(html, `<html lang="${locale === 'en' || (locale === 'de' && !kind.de) ? 'en-GB' : locale}">`)
      t.match(html, /<meta name="color-scheme" content="light dark">/)
      t.match(html, /@media \(prefers-color-scheme: dark\)/)
      t.equal(decode(/<title>([^<]+)<\/title>/.exec(html)?.[1] ?? ''), subject)
      t.equal(html.match(/<h1 /g)?.length, 1)
      t.notMatch(
        html,
        /<(?:img(?! src="cid:logo@gatehouse" width="\d+" height="\d+" alt=")|script|link|iframe|form|object|svg)\b|url\(|@import|\son\w+="/i,
        'loads nothing',
      )
      t.ok(html.length < 102_400, 'Gmail cuts longer ones')
      for (const [, width = ''] of html.matchAll(/(?:max-width:|\bwidth=")(\d+)(?:px|")/g))
        t.ok(Number(width) <= 600, `${width} px`)
      for (const [table] of html.matchAll(/<table[^>]*>/g)) t.match(table, 'role="presentation"')
      t.notMatch(
        text + html,
        /\{(?:hours|days|product|organization|member|roles|provider|scopes|left)\}(?! &(?:amp;)? www)/,
      )
      t.notMatch(text + html, 'undefined')
      t.notMatch(subject, /[{}<\n]/)
      const shown = oneLine(readable(html))
      for (const line of text.split('\n').map(each => each.trim()))
        if (line !== '' && !/^https?:|:$|: https?:/.test(line)) t.ok(shown.includes(oneLine(line)), line)
      const link = kind.link?.(SITE, VALUES as never)
      if (link) {
        const linked = [...html.matchAll(/<a href="([^"]*)"/g)].map(([, url = '']) => decode(url))
        t.same(linked.slice(0, 2), [link, link], 'the button, and the address in full')
        t.ok(text.includes(`\n${link}\n`))
        t.ok(kind.en.button, 'the button has a text')
      }
      t.ok(text.includes(BRAND.supportUrl))
    })

t.test('the button can be read, with the colour of any brand', async t => {
  for (const color of ['#2f5bea', '#000000', '#ffffff', '#ffd400', '#808080', '#00ff00', '#ff0066']) {
    const { fill, onFill } = brandColors(color).light
    const { html } = composerWith({ fill, onFill }).compose('verification', 'en', [VALUES])
    const [, background = ''] = /bgcolor="(#[0-9a-f]{6})"[^>]*>\s*<a /.exec(html) ?? []
    const [, text = ''] = /<a [^>]*;color:(#[0-9a-f]{6});text-decoration:none/.exec(html) ?? []
    const [dark = 0, light = 0] = [luminance(background), luminance(text)].sort((one, other) => one - other)
    t.ok((light + 0.05) / (dark + 0.05) >= 4.5, color)
  }
})

t.test('the head has the logo and the name, or what stands for them', async t => {
  const headOf = (logo: MailBrand['logo']) => {
    const { html, logo: attached } = composerWith({ logo }).compose('verification', 'en', [VALUES])
    const [head = ''] = /<tr><td style="padding:0 4px 16px">[\s\S]*?<\/table>/.exec(html) ?? []
    t.equal(attached !== undefined, /<img/.test(head))
    return { image: /<img[^>]*>/.exec(head)?.[0], text: oneLine(readable(head)).trim() }
  }
  t.match(headOf('letter'), { image: undefined, text: 'A Acme <b> & Sons' })
  t.match(headOf('name'), { image: undefined, text: 'Acme <b> & Sons' })
  t.match(headOf({ content: PNG, ratio: 1 }), {
    image: 'src="cid:logo@gatehouse" width="28" height="28" alt=""',
    text: 'Acme <b> & Sons',
  })
  t.match(headOf({ content: PNG, ratio: 4 }), {
    image: 'width="112" height="28" alt="Acme &lt;b&gt; &amp; Sons"',
    text: '',
  })
  t.match(headOf({ content: PNG, ratio: 20 }), { image: 'width="240" height="12"' })
})

/** Kinds that have each part of a mail between them. */
const DIFFERENT = ['accessRemoved', 'emailCode', 'organizationMemberLeft', 'webhookDisabled']

t.test(
  'Chromium shows every mail without requests, at 360 px without a scroll bar, and axe finds nothing',
  { skip: withoutBrowser },
  async t => {
    const browser = await launchBrowser(t)
    const long = { ...VALUES, ...LONG }
    for (const [view, options] of VIEWS) {
      const page = await browser.newPage(options)
      const requested: string[] = []
      page.on('request', request => requested.push(request.url()))
      for (const locale of LANGUAGES)
        for (const [name] of KINDS) {
          const { html } = composerWith({ logo: 'letter' }).compose(name, locale, [long])
          await page.setContent(html)
          const title = `${name} in ${locale}, ${view}`
          if (DIFFERENT.includes(name)) t.strictSame(await violationsOf(page), [], title)
          t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), title)
        }
      t.strictSame(requested, [])
      await page.close()
    }
  },
)

t.test('a PNG logo is inside of the mail, and an SVG is not', async t => {
  const svg = join(temporaryFolder(t), 'logo.svg')
  writeFileSync(svg, '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M0 0h1v1z"/></svg>')
  const png = join(temporaryFolder(t), 'logo.png')
  writeFileSync(png, PNG)
  const attachmentsWith = async (env: Record<string, string>) => {
    const app = await build(t, { env: { PRODUCT_NAME: 'Acme', ...env } })
    app.services.mails.send('verification', recipient('ann@example.com'), VALUES)
    await app.close()
    const [mail] = await mailbox(app).all()
    t.match(mail?.text, 'Acme')
    t.match(readable(mail?.html ?? ''), 'Acme')
    return mail?.attachments
  }
  const [logo, ...others] = (await attachmentsWith({ BRAND_LOGO: png })) ?? []
  t.match(logo, {
    contentId: '<logo@gatehouse>',
    mimeType: 'image/png',
    disposition: 'inline',
    related: true,
  })
  t.ok(Buffer.from(logo?.content as ArrayBuffer).equals(PNG))
  t.strictSame(others, [])
  t.strictSame(await attachmentsWith({ BRAND_LOGO: svg }), [])
  t.strictSame(await attachmentsWith({}), [])
})

t.test('a subject has no places, which a user could fill', async t => {
  for (const [name, { en, de }] of KINDS) t.notMatch([en.subject, de?.subject].join(), /[{}]/, name)
})
