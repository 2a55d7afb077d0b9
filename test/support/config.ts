/** The configuration of a service with the features of every service. */
import { allFeatures } from '../../src/built-in-features.ts'
import { type Config, loadConfig as loadConfigOf } from '../../src/config/config.ts'
import type { Environment } from '../../src/config/read-settings.ts'

/** @throws {ConfigError} */
export const loadConfig = (environment: Environment, basePath = ''): Config =>
  loadConfigOf(environment, allFeatures(), basePath)
