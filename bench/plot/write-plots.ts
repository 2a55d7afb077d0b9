/** Writes the plots and their data into `bench/plots`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Theme } from '#base/plots/svg'
import { chart } from './chart.ts'
import type { LoadCurves } from './load-curves.ts'

const FOLDER = join(import.meta.dirname, '..', 'plots')

/** The backgrounds and greys are those of GitHub, where the plots are shown. */
export const THEMES: readonly Theme[] = [
  {
    name: 'light',
    background: '#ffffff',
    text: '#1f2328',
    muted: '#59636e',
    grid: '#e2e6ea',
    series: ['#0072b2', '#bd4b00'],
  },
  {
    name: 'dark',
    background: '#0d1117',
    text: '#f0f6fc',
    muted: '#9198a1',
    grid: '#262c35',
    series: ['#56b4e9', '#e69f00'],
  },
]

/** The contents of all files, by name. */
export const plotFiles = ({ conditions, plots }: LoadCurves): Readonly<Record<string, string>> =>
  Object.fromEntries([
    ['load-curves.json', `${JSON.stringify({ conditions, plots }, null, 2)}\n`],
    ...plots.flatMap(plot =>
      THEMES.map(theme => [`${plot.name}-${theme.name}.svg`, chart(plot, conditions, theme)]),
    ),
  ])

/** Four significant digits, which is more than a measurement has. */
const rounded = (curves: LoadCurves): LoadCurves =>
  JSON.parse(
    JSON.stringify(curves, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)),
  )

export const writePlots = (curves: LoadCurves): void => {
  mkdirSync(FOLDER, { recursive: true })
  for (const [name, content] of Object.entries(plotFiles(rounded(curves))))
    writeFileSync(join(FOLDER, name), content)
}
