/** The brand (docs/configuration.md): colours that can be read, and images that are only drawings. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type BrandPalette, brandColors, contrastOf } from '#base/brand-colors'
import { build } from '../support/build.ts'
import { loadConfig } from '../support/config.ts'

/** Surfaces and text of `src/http/pages/style.css`. */
const MODES = {
  light: { surfaces: ['#f7f8fa', '#ffffff', '#f3f4f7', '#eef0f4', '#e7eaf0'], texts: ['#14171d', '#596272'] },
  dark: { surfaces: ['#0b0d11', '#13161b', '#1a1e25', '#101318', '#1e232b'], texts: ['#e8ebf0', '#9ca6b5'] },
} as const

const STEPS = ['00', '33', '66', '99', 'cc', 'ff']

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 24"><path d="M0 0h9"/></svg>'

const ONE_PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

t.test('every colour of a brand gives text of 4.5:1', t => {
  const isReadable = (color: string, mode: keyof typeof MODES, palette: BrandPalette): void => {
    const { surfaces, texts } = MODES[mode]
    const pairs = [
      [palette.onFill, palette.fill],
      [palette.onFill, palette.fillHover],
      ...[...surfaces, palette.tint].map(surface => [palette.accent, surface]),
      ...texts.map(text => [text, palette.tint]),
    ]
    for (const [text = '', surface = ''] of pairs)
      if (contrastOf(text, surface) < 4.5) t.fail(`${color}, ${mode}: ${text} on ${surface}`)
  }
  for (const red of STEPS)
    for (const green of STEPS)
      for (const blue of STEPS) {
        const color = `#${red}${green}${blue}`
        const { light, dark } = brandColors(color)
        isReadable(color, 'light', light)
        isReadable(color, 'dark', dark)
        if (contrastOf(dark.fill, MODES.dark.surfaces[1]) < 3) t.fail(`${color}: its buttons in the dark`)
      }
  t.match(brandColors('#2f5bea').light, { fill: '#2f5bea', onFill: '#ffffff' }, 'one that suits stays')
  t.match(brandColors('#ffd400').light, { fill: '#ffd400', onFill: '#0b0d11' })
  t.equal(contrastOf('#000000', '#ffffff'), 21)
  t.end()
})

t.test('a colour, a logo or an address that is not valid stops the start with a sentence', t => {
  const folder = t.testdir()
  const file = (name: string, content: string | Buffer): string => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const inSvg = (content: string): string => SVG.replace('<path d="M0 0h9"/>', content)
  t.throws(() => loadConfig({ BRAND_COLOR: 'blue' }), /BRAND_COLOR must be a colour such as #2f5bea/)
  t.throws(() => loadConfig({ SUPPORT_URL: 'mailto:nobody' }), /SUPPORT_URL must be the URL of a page/)
  t.throws(
    () => loadConfig({ BRAND_LOGO: join(folder, 'absent.svg') }),
    /BRAND_LOGO must be a file that can be read/,
  )
  t.throws(
    () => loadConfig({ BRAND_LOGO: file('big.png', Buffer.concat([ONE_PIXEL, Buffer.alloc(262_144)])) }),
    /at most 256 KiB/,
  )
  t.throws(() => loadConfig({ BRAND_LOGO: file('page.html', '<!DOCTYPE html><p>no') }), /BRAND_LOGO must be/)
  t.throws(
    () => loadConfig({ BRAND_LOGO: file('icon.ico', Buffer.from('000001000100', 'hex')) }),
    /an SVG or a PNG/,
  )
  for (const [name, content] of Object.entries({
    script: inSvg('<script>alert(1)</script>'),
    'script in a namespace': inSvg('<s:script xmlns:s="http://www.w3.org/2000/svg">alert(1)</s:script>'),
    handler: inSvg('<path d="M0 0" onload="alert(1)"/>'),
    'handler in capitals': inSvg('<path d="M0 0"\nONLOAD = "alert(1)"/>'),
    html: inSvg('<foreignObject><p/></foreignObject>'),
    link: inSvg('<a href="https://example.com"><path d="M0 0"/></a>'),
    image: inSvg('<image href="https://example.com/a.png"/>'),
    'image with another prefix': inSvg("<image xlink:href='//example.com/a.png'/>"),
    use: inSvg('<use href="other.svg#a"/>'),
    'nested drawing': inSvg('<image href="data:image/svg+xml;base64,AAAA"/>'),
    'encoded address': inSvg('<image href="&#104;ttps://example.com"/>'),
    animation: inSvg('<animate attributeName="href" to="javascript:alert(1)"/>'),
    style: inSvg('<style>path { fill: url(https://example.com/a) }</style>'),
    import: inSvg('<style>@import "https://example.com/a.css";</style>'),
    'an encoded import': inSvg('<style>&#64;import "https://example.com/a.css";</style>'),
    'a set of images': inSvg('<style>path{fill:image-set("https://example.com/a.png" 1x)}</style>'),
    'another prefix': inSvg('<image é:href="https://example.com/a.png"/>'),
    escape: inSvg('<style>path { fill: u\\72l(https://example.com/a) }</style>'),
    entity: `<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>${SVG}`,
    stylesheet: `<?xml version="1.0"?><?xml-stylesheet href="https://example.com/a.css"?>${SVG}`,
    section: inSvg('<style><![CDATA[path{}]]></style>'),
  }))
    t.throws(
      () => loadConfig({ BRAND_LOGO: file('logo.svg', content) }),
      /BRAND_LOGO must be a drawing alone.* it has /,
      name,
    )
  for (const content of [
    SVG,
    `<?xml version="1.0" encoding="UTF-8"?>\n<!-- made by a <script> -->\n${SVG}`,
    inSvg(
      '<defs><linearGradient id="a"><stop offset="0"/></linearGradient></defs><path fill="url(#a)" d="M0 0"/><use href="#a"/>',
    ),
  ])
    t.doesNotThrow(() => loadConfig({ BRAND_LOGO: file('logo.svg', content) }), content)
  t.end()
})

t.test('logo and icon are sent as drawings alone, and pages link to the addresses of the brand', async t => {
  const folder = t.testdir({ 'logo.svg': SVG, 'icon.png': ONE_PIXEL })
  const app = await build(t, {
    env: {
      PRODUCT_NAME: 'Acme & Sons',
      BRAND_LOGO: join(folder, 'logo.svg'),
      BRAND_ICON: join(folder, 'icon.png'),
      BRAND_COLOR: '#0A7',
      PRIVACY_URL: 'https://example.com/privacy',
      TERMS_URL: 'https://example.com/terms',
      SUPPORT_URL: 'mailto:help@example.com',
    },
  })
  const { body } = await app.inject('/sign-in')
  const [, logo = ''] =
    /<img class="wordmark" src="\.(\/pages\/logo\.[\da-f]{12}\.svg)" alt="Acme &amp; Sons">/.exec(body) ?? []
  const [, icon = ''] = /<link rel="icon" href="\.(\/pages\/icon\.[\da-f]{12}\.png)">/.exec(body) ?? []
  for (const url of ['https://example.com/privacy', 'https://example.com/terms', 'mailto:help@example.com'])
    t.match(body, `<a href="${url}">`)
  const sent = await app.inject(logo)
  t.equal(sent.body, SVG)
  t.match(sent.headers, {
    'content-type': 'image/svg+xml',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    'x-content-type-options': 'nosniff',
    'cache-control': 'public, max-age=2592000',
  })
  for (const url of [icon, '/favicon.ico']) {
    const response = await app.inject(url)
    t.equal(response.headers['content-type'], 'image/png', url)
    t.same(response.rawPayload, ONE_PIXEL)
  }
  t.match((await app.inject('/pages/style.css')).body, '--brand-fill:')
  const font = await app.inject('/pages/fonts/inter-latin-wght-normal.woff2')
  t.match(font.headers, { 'content-type': 'font/woff2', 'cache-control': 'public, max-age=2592000' })
})

t.test('without files the logo and the icon are the first letter of the product', async t => {
  const app = await build(t, { env: { PRODUCT_NAME: '<Acme' } })
  t.match((await app.inject('/sign-in')).body, '<span class="logo" aria-hidden="true">&lt;</span>')
  t.match((await app.inject('/favicon.ico')).body, '>&lt;</text>')
})
