/** `settings`: every setting, those of features too. */
import type { Command } from 'commander'
import { print, table } from '#feature/commands/output'
import { allFeatures } from '#features/built-in'
import { listSettings } from '../config/listed-settings.ts'

const listed = () =>
  listSettings(allFeatures()).map(({ name, feature, setting }) => ({
    name,
    default: setting.default,
    feature,
    description: setting.description,
  }))

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
