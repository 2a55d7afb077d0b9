/** Elements with weights in `Accept` and `Accept-Encoding` (RFC 9110 §12.4.2, §12.5). */

/** Elements of a header field that count: no client sends more, and each costs time. */
const MAX_ELEMENTS = 64

const ELEMENT = /^([^\s;]+)\s*((?:;.*)?)$/s

const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/** @returns the weights, 0 to 1, by names in lower case; of a repeated name the highest. Elements that are not valid are ignored. */
const weightsIn = (field: string): ReadonlyMap<string, number> => {
  const weights = new Map<string, number>()
  for (const element of field.split(',', MAX_ELEMENTS)) {
    const [, given, parameters = ''] = ELEMENT.exec(element.trim()) ?? []
    const [, weight = '1'] = /;\s*q(?:=|\s*(?=;|$))([^;\s]*)\s*(?:;|$)/i.exec(parameters) ?? []
    const name = given?.toLowerCase()
    if (name !== undefined && WEIGHT.test(weight))
      weights.set(name, Math.max(Number(weight), weights.get(name) ?? 0))
  }
  return weights
}

/** The weights of content codings. `x-gzip` is an old name (RFC 9110 §8.4.1.3), which counts where there is no `gzip`. */
export const codingWeights = (acceptEncoding: string): ReadonlyMap<string, number> => {
  const weights = weightsIn(acceptEncoding)
  const alias = weights.get('x-gzip')
  return alias === undefined ? weights : new Map([['gzip', alias], ...weights])
}

/**
 * Whether a client prefers a media type over the one that it gets by default. The most specific range decides about each (RFC 9110
 * §12.5.1). With equal weights it does only if its range is more specific: it is named, and the default is not.
 */
export const prefersType = (accept: string, type: string, defaultType: string): boolean => {
  const weights = weightsIn(accept)
  const preferenceOf = (name: string) => {
    const ranges = ['*/*', `${name.split('/')[0]}/*`, name]
    const specificity = ranges.findLastIndex(range => weights.has(range))
    return { specificity, weight: weights.get(ranges[specificity] ?? '') ?? 0 }
  }
  const [own, other] = [preferenceOf(type), preferenceOf(defaultType)]
  if (own.weight !== other.weight) return own.weight > other.weight
  return own.weight > 0 && own.specificity > other.specificity
}
