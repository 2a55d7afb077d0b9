/** Finds misspelled settings among the variables of the environment. */
import type { Environment, SettingDeclarations } from './read-settings.ts'
import { SETTINGS, variablesOf } from './settings.ts'

const letters = (name: string): string => name.replaceAll('_', '').toUpperCase()

/** Letters that may differ. Short names resemble variables of other programs (`POST`, `PORTS`, `HOSTS`). */
const tolerance = (name: string): number => (name.length >= 10 ? 2 : name.length >= 6 ? 1 : 0)

/**
 * Letters that are inserted, deleted, replaced or transposed (optimal string alignment).
 * @returns infinity above `limit`, which most names exceed after a few letters: comparing all pairs in full would slow down a start.
 */
const distance = (a: string, b: string, limit: number): number => {
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)]
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Number.POSITIVE_INFINITY
  for (let row = 1; row <= a.length; row += 1) {
    rows.push([row])
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = at(row - 1, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1)
      const isExchange = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const exchanged = isExchange ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY
      rows[row]?.push(Math.min(replaced, exchanged, at(row - 1, column) + 1, at(row, column - 1) + 1))
    }
    if (Math.min(...(rows[row] ?? [])) > limit) return Number.POSITIVE_INFINITY
  }
  return at(a.length, b.length)
}

/** The setting that a name resembles most. */
const similarSetting = (name: string, names: readonly string[]): string | undefined => {
  const written = letters(name)
  const near = names
    .map(setting => {
      const right = letters(setting)
      const limit = tolerance(written.length < right.length ? written : right)
      const isFar = Math.abs(written.length - right.length) > limit
      return { setting, limit, distance: isFar ? Number.POSITIVE_INFINITY : distance(written, right, limit) }
    })
    .filter(each => each.distance <= each.limit)
  return near.sort((a, b) => a.distance - b.distance)[0]?.setting
}

/** A sentence for each misspelled setting. Other variables belong to other programs. */
export const misspelledSettings = (environment: Environment, ofFeatures: SettingDeclarations): string[] => {
  const settings = { ...SETTINGS, ...ofFeatures }
  const names = variablesOf(settings)
  return Object.entries(environment)
    .filter(([name, value]) => value?.trim() && !names.includes(name))
    .flatMap(([name]) => {
      const setting = similarSetting(name, names)
      return setting === undefined ? [] : [`${name} is not a setting; did you mean ${setting}?`]
    })
}
