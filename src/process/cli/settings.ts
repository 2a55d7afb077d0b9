/** `settings`: every setting, those of features too. */
import type { Command } from 'commander'
import type { Setting } from '#base/settings/readers'
import { print, table } from '#feature/commands/output'
import { allFeatures } from '#features/built-in'
import { SETTINGS } from '../config/settings.ts'

interface Listed {
  readonly name: string
  readonly default: string | null
  /** `null` for settings of the core. */
  readonly feature: string | null
  readonly description: string
}

const listed = (): Listed[] => [
  ...Object.entries(SETTINGS).map(([name, setting]) => ({
    name,
    default: setting.default,
    feature: null,
    description: setting.description,
  })),
  ...allFeatures().flatMap(({ name: feature, settings = {} }) =>
    Object.entries<Setting>(settings).map(([name, { default: byDefault, description }]) => ({
      name,
      default: byDefault,
      feature,
      description,
    })),
  ),
]

export const settingsCommand = (program: Command): void => {
  program
    .command('settings')
    .description('List every setting with its default and what it does')
    .option('--json', 'write it as one line of JSON')
    .action(({ json }: { json?: boolean }) => {
      const results = listed()
      const rows = results.map(({ name, default: byDefault, feature, description }) => [
        name,
        byDefault ?? '-',
        feature ?? '-',
        description,
      ])
      print(json, { results }, table([['setting', 'default', 'feature', 'what it does'], ...rows]))
    })
}
