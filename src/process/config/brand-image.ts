/** Images of a brand, from files of the operator. They are read and checked once, at the start. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { nameOf, type Reader, SettingError } from '#base/settings/readers'
import type { BrandImage } from '#http/pages/brand'

const MAX_SIZE = 262_144

const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
const ICO = Buffer.from('00000100', 'hex')

/** What drawings consist of. Scripts, HTML, links and animations are not among it. */
const ELEMENTS = new Set(
  `svg g defs symbol use path rect circle ellipse line polyline polygon text tspan textPath image title desc metadata style
  linearGradient radialGradient stop clipPath mask pattern marker filter feBlend feColorMatrix feComponentTransfer feComposite
  feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR
  feGaussianBlur feMerge feMergeNode feMorphology feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence`.split(
    /\s+/,
  ),
)

/** A part of the same file, or an image within it. */
const OWN_REFERENCE = /^(?:#|data:image\/(?:png|jpeg|gif|webp);base64,)/

/** @returns what a drawing must not have, for an error message; `undefined` for a harmless one. */
const problemOfSvg = (text: string): string | undefined => {
  const plain = text.replaceAll(/<!--[\s\S]*?-->/g, '').replace(/^\s*<\?xml\s[^?]*\?>/, '')
  const declaration = /<[!?]\[?\w*/.exec(plain)?.[0]
  if (declaration !== undefined) return declaration
  for (const [, name = ''] of plain.matchAll(/<\/?\s*([^\s/>]+)/g))
    if (!ELEMENTS.has(name)) return `<${name}>`
  const event = /[\s"'/](on\w+)\s*=/i.exec(plain)?.[1]
  if (event !== undefined) return `the attribute ${event}`
  for (const [, name = '', , value = ''] of plain.matchAll(
    /\s((?:[^\s=:>]+:)?(?:href|src))\s*=\s*(["'])([\s\S]*?)\2/gi,
  ))
    if (!OWN_REFERENCE.test(value.trim())) return `the attribute ${name} with another address`
  const address = /url\(\s*["']?\s*(?!["'\s#])|image-set\(|@import|&#|\\|javascript:/i.exec(plain)?.[0]
  return address === undefined ? undefined : `${address.trim()}, which leads to another address`
}

const ratioOfSvg = (text: string): number => {
  const root = /<svg[^>]*>/.exec(text)?.[0] ?? ''
  const [, width, height] =
    /viewBox\s*=\s*["']\s*[\d.-]+[\s,]+[\d.-]+[\s,]+([\d.]+)[\s,]+([\d.]+)/.exec(root) ??
    /\swidth\s*=\s*["']([\d.]+)[^>]*\sheight\s*=\s*["']([\d.]+)/.exec(root) ??
    []
  const ratio = Number(width) / Number(height)
  return Number.isFinite(ratio) ? ratio : 1
}

const svgOf = (content: Buffer, file: string) => {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    return null
  }
  if (!/^\s*(?:<\?xml|<!--|<!DOCTYPE|<svg)/i.test(text) || !/<svg[\s>]/.test(text)) return null
  const problem = problemOfSvg(text)
  if (problem !== undefined)
    throw new SettingError(
      `must be a drawing alone, without scripts, links, declarations and parts of other files; it has ${problem}: save it as plain SVG${nameOf(file)}`,
    )
  return { type: 'image/svg+xml', extension: 'svg', ratio: ratioOfSvg(text) } as const
}

const pngOf = (content: Buffer) =>
  content.subarray(0, 8).equals(PNG) && content.length > 24
    ? ({
        type: 'image/png',
        extension: 'png',
        ratio: content.readUInt32BE(16) / content.readUInt32BE(20),
      } as const)
    : null

const icoOf = (content: Buffer) =>
  content.subarray(0, 4).equals(ICO) ? ({ type: 'image/x-icon', extension: 'ico', ratio: 1 } as const) : null

const read = (file: string): Buffer => {
  try {
    return readFileSync(file)
  } catch {
    throw new SettingError(`must be a file that can be read${nameOf(file)}`)
  }
}

/** @param kinds in words, for error messages. */
const imageReader =
  (kinds: string, allowsIco: boolean): Reader<BrandImage> =>
  file => {
    const content = read(file)
    if (content.length > MAX_SIZE)
      throw new SettingError(
        `must be a file of at most 256 KiB; it has ${Math.ceil(content.length / 1024)}${nameOf(file)}`,
      )
    const found = pngOf(content) ?? (allowsIco ? icoOf(content) : null) ?? svgOf(content, file)
    if (found === null) throw new SettingError(`must be a file with ${kinds}${nameOf(file)}`)
    return { content, hash: createHash('sha256').update(content).digest('hex').slice(0, 12), ...found }
  }

export const brandLogo = imageReader('an SVG or a PNG', false)
export const brandIcon = imageReader('an SVG, a PNG or an ICO', true)
