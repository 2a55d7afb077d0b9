/** The configuration of a service with the features of every service. */
import { allFeatures } from '#features/built-in'
import { type Config, loadConfig as loadConfigOf } from '#process/config/config'
import type { Environment } from '#process/config/read-settings'

/** @throws {ConfigError} */
export const loadConfig = (environment: Environment, basePath = ''): Config =>
  loadConfigOf(environment, allFeatures(), basePath)
