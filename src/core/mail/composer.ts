/** The content of mails: from a host's template, else from the texts of their kind. */
import { DEFAULT_LANGUAGE, fill, Languages, type OwnedTexts } from '#base/texts'
import { DEFAULT_BRAND, FRAME_TEXTS, htmlOf, type MailBrand, type MailParts, textOf } from './frame.ts'
import { composeFrom } from './host-templates.ts'
import type { MailKind, MailKinds, MailSite, MailTemplate, MailTexts } from './kinds.ts'
import type { Content } from './transports.ts'

type Templates = Readonly<Record<string, MailTemplate | undefined>>

/** What every mail of a service is made with. */
export interface ComposerDeps extends Omit<MailSite, 'host' | 'name'> {
  readonly productName: string
  readonly templates?: Templates | undefined
  readonly languages?: Languages
  readonly brand?: MailBrand
}

const ownedTexts = new WeakMap<MailKind, OwnedTexts>()

/** The texts of a kind with their key, `mails.<kind>`. The same object each time, by which {@link Languages} finds what it has merged. */
export const ownedBy = (name: string, kind: MailKind): OwnedTexts => {
  const found = ownedTexts.get(kind) ?? { owner: `mails.${name}`, en: kind.en, de: kind.de ?? {} }
  ownedTexts.set(kind, found)
  return found
}

const partsOf = (kind: MailKind, texts: MailTexts, site: MailSite, values: readonly unknown[]): MailParts => {
  const [given] = values as never[]
  const { name: product, host, publicUrl } = site
  const places = { product, host, publicUrl, ...kind.places?.(given as never) }
  const filled = (text: string): string => fill(text, places)
  const link = kind.link?.(site, ...(values as never[])) ?? null
  return {
    subject: texts.subject,
    paragraphs: [filled(texts.text), ...(kind.more?.(texts as never, given as never) ?? [])],
    code: kind.code?.(given as never) ?? null,
    button: link === null ? null : { text: texts.button ?? link, link },
    reason: texts.reason === undefined ? null : filled(texts.reason),
  }
}

export class MailComposer<Kinds extends MailKinds> {
  readonly #kinds: Kinds
  readonly #site: MailSite
  readonly #templates: Templates
  readonly #languages: Languages
  readonly #brand: MailBrand
  readonly #onFailure: (error: Error, name: string) => void

  /** @param onFailure when the template of a host fails for a kind of mail, which is then composed without it. */
  constructor(kinds: Kinds, deps: ComposerDeps, onFailure: (error: Error, name: string) => void) {
    const { publicUrl, webUrl, accountUrl, productName, templates = {}, languages, brand } = deps
    this.#kinds = kinds
    this.#site = { name: productName, host: new URL(publicUrl).host, publicUrl, webUrl, accountUrl }
    this.#templates = templates
    this.#languages = languages ?? new Languages()
    this.#brand = brand ?? DEFAULT_BRAND
    this.#onFailure = onFailure
  }

  /** `MailSender` checks the types of `values`. */
  compose(name: keyof Kinds & string, locale: string | null, values: readonly unknown[]): Content {
    const kind = this.#kinds[name] as Kinds[string]
    return this.#fromHost(name, kind, locale, values) ?? this.#fromTexts(name, kind, locale, values)
  }

  /** `null` without a template that works. */
  #fromHost(name: string, kind: MailKind, locale: string | null, values: readonly unknown[]): Content | null {
    const template = this.#templates[name]
    if (template === undefined) return null
    try {
      return composeFrom(template, kind, { ...this.#site, locale }, values)
    } catch (error) {
      this.#onFailure(error instanceof Error ? error : new Error(String(error)), name)
      return null
    }
  }

  /** In the recipient's language if the kind has that, else in English. */
  #fromTexts(name: string, kind: MailKind, locale: string | null, values: readonly unknown[]): Content {
    const languages = this.#languages
    const owned = ownedBy(name, kind)
    const tag = this.#languageOf(owned, locale)
    const texts = languages.textsOf(owned, tag) as unknown as MailTexts
    const parts = partsOf(kind, texts, this.#site, values)
    const frame = {
      product: this.#site.name,
      language: tag === DEFAULT_LANGUAGE ? 'en-GB' : tag,
      texts: languages.textsOf(FRAME_TEXTS, tag),
      brand: this.#brand,
    }
    return { subject: parts.subject, text: textOf(parts, frame), html: htmlOf(parts, frame) }
  }

  /** A kind whose subject the language of the recipient lacks is English as a whole. */
  #languageOf(owned: OwnedTexts, locale: string | null): string {
    const languages = this.#languages
    const tag = (locale === null ? undefined : languages.fitting(locale)) ?? DEFAULT_LANGUAGE
    return `${owned.owner}.subject` in languages.ownTexts(owned, tag) ? tag : DEFAULT_LANGUAGE
  }
}

interface MailedBrand extends Pick<MailBrand, 'supportUrl' | 'privacyUrl'> {
  readonly colors: { readonly light: Pick<MailBrand, 'fill' | 'onFill'> }
}

/** The settings that mails follow from. */
interface MailedSettings extends Pick<MailSite, 'publicUrl' | 'accountUrl'> {
  readonly productName: string
  readonly pagesUrl: string
  readonly brand: MailedBrand
}

export const composerDepsOf = ({ productName, publicUrl, pagesUrl, accountUrl, brand }: MailedSettings) => {
  const { fill, onFill } = brand.colors.light
  return {
    productName,
    publicUrl,
    webUrl: pagesUrl,
    accountUrl,
    brand: { fill, onFill, supportUrl: brand.supportUrl, privacyUrl: brand.privacyUrl },
  }
}
