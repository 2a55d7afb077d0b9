/** The plots of the bench: drawn from fixed data, and those of the repository. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import t from 'tap'
import type { Theme } from '#base/plots/svg'
import { chart } from '../../bench/plot/chart.ts'
import type { Curve, LoadCurves, Plot, Step } from '../../bench/plot/load-curves.ts'
import { plotFiles, THEMES } from '../../bench/plot/write-plots.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const PLOTS = join(PROJECT, 'bench', 'plots')

const CHROMIUM = '/usr/bin/chromium'

const LIGHT = THEMES[0] as Theme

const around = (median: number) => ({ median, min: median * 0.8, max: median * 1.3 })

/** A service that responds within `p99` ms until it is saturated. @param limit of p99, past which it rejects requests. */
const curveOf = (service: string, capacity: number, p99: number, limit?: number): Curve => ({
  service,
  steps: [0.01, 0.1, 0.5, 0.7, 0.9, 1, 1.2, 2, 4].map((part): Step => {
    const late = part > 1 ? Math.min(limit ?? Number.POSITIVE_INFINITY, 1_000 * part) : p99 / (1.1 - part)
    const offered = capacity * part
    const succeeded = Math.min(capacity, offered)
    const rejected = limit === undefined ? 0 : offered - succeeded
    return { offered, succeeded: around(succeeded), rejected, p99: around(late) }
  }),
})

const plotOf = (...curves: Curve[]): Plot => ({ name: 'example', title: 'GET /<example> & "others"', curves })

const CONDITIONS =
  '2 cores that also generate the load; linux x64, Node v24.21.0, SQLite; medians of 3 rounds of 5 s'

/** Curves that lie apart, beside each other, and on each other. */
const EXAMPLES: Readonly<Record<string, Plot>> = {
  apart: plotOf(curveOf('Gatehouse', 50_000, 1), curveOf('better-auth', 800, 8)),
  beside: plotOf(curveOf('Gatehouse', 160, 15, 1_300), curveOf('better-auth', 25, 90)),
  same: plotOf(curveOf('Gatehouse', 1_000, 2), curveOf('better-auth', 1_000, 2)),
  idle: plotOf(curveOf('Gatehouse', 1_000, 2), {
    service: 'better-auth',
    steps: curveOf('', 1_000, 2).steps.map(step => ({ ...step, succeeded: { median: 0, min: 0, max: 0 } })),
  }),
}

const committed = JSON.parse(readFileSync(join(PLOTS, 'load-curves.json'), 'utf8')) as LoadCurves

t.test(
  'the plots of the repository are drawn from the data beside them, and README.md shows each',
  async t => {
    const readme = readFileSync(join(PROJECT, 'README.md'), 'utf8')
    const files = plotFiles(committed)
    t.same(Object.keys(files).sort(), readdirSync(PLOTS).sort())
    for (const [name, content] of Object.entries(files)) {
      t.equal(content, readFileSync(join(PLOTS, name), 'utf8'), name)
      if (name.endsWith('.svg')) t.ok(readme.includes(`="bench/plots/${name}"`), name)
    }
  },
)

t.test(
  'a plot has titles, units, names of the curves and a description, and depends on the data only',
  async t => {
    const svg = chart(EXAMPLES.beside as Plot, CONDITIONS, LIGHT)
    for (const text of [
      'Successful responses per second',
      'p99 latency',
      'Offered load, requests per second',
    ])
      t.ok(svg.includes(text), text)
    for (const label of ['>Gatehouse<', '>better-auth<', '>Gatehouse, 503<', '>100 ms<', '>1 s<'])
      t.ok(svg.includes(label), label)
    t.match(svg, /<title id="title">GET \/&lt;example> &amp; &quot;others&quot;: [^<]+<\/title>/)
    t.match(svg, /<desc id="description">Gatehouse: up to 160 successful responses a second/)
    t.notMatch(svg, /NaN|Infinity|undefined/)
    t.equal(svg, chart(EXAMPLES.beside as Plot, CONDITIONS, LIGHT))
    t.not(svg, chart(EXAMPLES.apart as Plot, CONDITIONS, LIGHT))
  },
)

/** WCAG 2.2, relative luminance. */
const luminance = (color: string): number => {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map(start => Number.parseInt(color.slice(start, start + 2), 16) / 255)
    .map(value => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const contrast = (one: string, other: string): number => {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (high + 0.05) / (low + 0.05)
}

t.test('colours of texts and curves have a contrast of at least 4.5:1 (WCAG 2.2 §1.4.3)', async t => {
  for (const { name, background, text, muted, series } of THEMES)
    for (const color of [text, muted, ...series])
      t.ok(contrast(color, background) >= 4.5, `${name}: ${color}`)
})

/** Which texts lie outside of the picture or over each other, as the browser draws them. */
const misplacedTexts = async (page: Page): Promise<readonly string[]> => {
  const visible = page.viewportSize()?.width ?? 0
  const texts = await Promise.all(
    (await page.locator('svg text').all()).map(async text => {
      const { x, y, width, height } = (await text.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
      // The boxes of fonts have some room above and below the letters.
      const box = { left: x, right: x + width, top: y + 2, bottom: y + height - 2 }
      return { content: await text.textContent(), box }
    }),
  )
  return texts.flatMap(({ content, box }, index) => [
    ...(box.left < 0 || box.right > visible ? [`${content} is clipped`] : []),
    ...texts
      .slice(index + 1)
      .filter(
        ({ box: { left, right, top, bottom } }) =>
          left < box.right && box.left < right && top < box.bottom && box.top < bottom,
      )
      .map(other => `${content} is over ${other.content}`),
  ])
}

const skip = existsSync(CHROMIUM) ? false : "needs Debian's chromium"

t.test(
  'in a browser a plot is well-formed, and no text is clipped or over another one',
  { skip },
  async t => {
    const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync']
    const browser: Browser = await chromium.launch({ executablePath: CHROMIUM, args })
    t.teardown(() => browser.close())
    const page = await browser.newPage({ viewport: { width: 360, height: 900 } })
    const all = { ...EXAMPLES, ...Object.fromEntries(committed.plots.map(plot => [plot.name, plot])) }
    // Themes differ in colours only.
    for (const [name, plot] of Object.entries(all)) {
      await page.goto(`data:image/svg+xml,${encodeURIComponent(chart(plot, CONDITIONS, LIGHT))}`)
      t.equal(await page.locator('parsererror').count(), 0, `${name} is well-formed`)
      t.ok((await page.locator('svg text').count()) > 20, name)
      t.same(await misplacedTexts(page), [], name)
    }
  },
)
