/** What pages show of the brand, and the files of it that the service sends. */
import { type BrandColors, WORDMARK_RATIO } from '#base/brand-colors'
import { html } from './html.ts'

/** An image from a file of the operator. */
export interface BrandImage {
  readonly content: Buffer
  readonly type: string
  readonly extension: string
  /** Of the content, for URLs that change with it. */
  readonly hash: string
  /** Width by height. */
  readonly ratio: number
}

export interface BrandSettings {
  readonly colors: BrandColors
  readonly logo: BrandImage | null
  readonly icon: BrandImage | null
  readonly termsUrl: string | null
  readonly privacyUrl: string | null
  readonly supportUrl: string | null
}

export interface Brand extends Pick<BrandSettings, 'termsUrl' | 'privacyUrl' | 'supportUrl'> {
  /** Its URL, relative to the service. A wordmark has the name of the product in it. `null`: the first letter of the name. */
  readonly logo: { readonly url: string; readonly isWordmark: boolean } | null
  /** The URL of the icon, relative to the service. */
  readonly iconUrl: string
}

interface BrandFile {
  /** Relative to the service. */
  readonly url: string
  readonly type: string
  readonly content: string | Buffer
}

const fileOf = (name: string, { hash, extension, type, content }: BrandImage): BrandFile => ({
  url: `pages/${name}.${hash}.${extension}`,
  type,
  content,
})

/** The first letter of the product on the colour of the brand. */
const letterIcon = (product: string, { light }: BrandColors): BrandFile => ({
  url: 'pages/icon.svg',
  type: 'image/svg+xml',
  content:
    html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 28"><rect width="28" height="28" rx="8" fill="${light.fill}"/><text x="14" y="20" text-anchor="middle" font-family="system-ui, sans-serif" font-size="17" font-weight="600" fill="${light.onFill}">${[...product][0]}</text></svg>`
      .text,
})

/** @returns `files` with the icon first. */
export const brandOf = (
  product: string,
  { colors, logo, icon, termsUrl, privacyUrl, supportUrl }: BrandSettings,
): { readonly brand: Brand; readonly files: readonly [icon: BrandFile, ...others: BrandFile[]] } => {
  const iconFile = icon === null ? letterIcon(product, colors) : fileOf('icon', icon)
  const logoFile = logo === null ? null : fileOf('logo', logo)
  return {
    brand: {
      logo: logoFile && { url: logoFile.url, isWordmark: (logo?.ratio ?? 1) >= WORDMARK_RATIO },
      iconUrl: iconFile.url,
      termsUrl,
      privacyUrl,
      supportUrl,
    },
    files: logoFile === null ? [iconFile] : [iconFile, logoFile],
  }
}
