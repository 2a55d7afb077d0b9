/** A feature that cannot be used as it is declared. The message is complete: no stack trace is needed. */
export class FeatureError extends Error {
  readonly code = 'FEATURE'

  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FeatureError'
  }
}
