/** The list of all settings: what the command `settings` prints, and what administrators see of the values. */
import { type Setting, shownOf } from '#base/settings/readers'
import type { Feature } from '#feature/declaration'
import type { Settings } from './read-settings.ts'
import { SETTINGS } from './settings.ts'

interface ListedSetting {
  readonly name: string
  /** `null` for settings of the core. */
  readonly feature: string | null
  readonly setting: Setting
}

/** Every setting, of the core first. */
export const listSettings = (features: readonly Feature[]): ListedSetting[] => {
  const listed = (feature: string | null, settings: Readonly<Record<string, Setting>>): ListedSetting[] =>
    Object.entries(settings).map(([name, setting]) => ({ name, feature, setting }))
  return [...listed(null, SETTINGS), ...features.flatMap(({ name, settings = {} }) => listed(name, settings))]
}

/** What administrators see of a setting. */
export interface SettingState {
  readonly name: string
  /** `null` for settings of the core. */
  readonly feature: string | null
  /** The text that applies; `null` without one, and for what may be a secret. */
  readonly value: string | null
  /** `null` without one, and for what may be a secret. */
  readonly default: string | null
  /** Whether the environment has it. */
  readonly isSet: boolean
  readonly description: string
}

export const settingStates = (
  features: readonly Feature[],
  { shown, variables }: Pick<Settings, 'shown' | 'variables'>,
): SettingState[] =>
  listSettings(features).map(({ name, feature, setting }) => ({
    name,
    feature,
    value: shown[name] ?? null,
    default: setting.default === null ? null : shownOf(setting, setting.default),
    isSet: variables[name] !== undefined,
    description: setting.description,
  }))
