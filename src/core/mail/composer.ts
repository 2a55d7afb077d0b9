/** The content of mails: from a host's template, else from a file of the operator, else from the texts of their kind. */
import { DEFAULT_LANGUAGE, fill, fitting, Languages, type OwnedTexts, shortened } from '#base/texts'
import {
  DEFAULT_BRAND,
  FRAME_TEXTS,
  htmlOf,
  LOGO_URL,
  type MailBrand,
  type MailLogo,
  type MailParts,
  textOf,
} from './frame.ts'
import { composeFrom } from './host-templates.ts'
import type { MailKind, MailKinds, MailSite, MailTemplate, MailTexts } from './kinds.ts'
import { fillTemplate, type TemplateFiles } from './template-files.ts'
import type { Content } from './transports.ts'

type Templates = Readonly<Record<string, MailTemplate | undefined>>

/** What every mail of a service is made with. */
export interface ComposerDeps extends Omit<MailSite, 'host' | 'name'> {
  readonly productName: string
  /** Of a host. */
  readonly templates?: Templates | undefined
  readonly templateFiles?: TemplateFiles | null
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

/** What a mail says, in one language. */
interface Said {
  readonly texts: MailTexts
  /** The values of places. */
  readonly places: Readonly<Record<string, string | number>>
  readonly more: readonly string[]
  readonly code: string | null
  readonly link: string | null
}

const partsOf = ({ texts, places, more, code, link }: Said): MailParts => {
  const filled = (text: string): string => fill(text, places)
  return {
    subject: texts.subject,
    paragraphs: [filled(texts.text), ...more],
    code,
    button: link === null ? null : { text: texts.button ?? link, link },
    reason: texts.reason === undefined ? null : filled(texts.reason),
  }
}

export class MailComposer<Kinds extends MailKinds> {
  readonly #kinds: Kinds
  readonly #site: MailSite
  readonly #templates: Templates
  readonly #files: TemplateFiles['templates']
  readonly #languages: Languages
  readonly #brand: MailBrand
  readonly #onFailure: (error: Error, name: string) => void

  /** @param onFailure when the template of a host fails for a kind of mail, which is then composed without it. */
  constructor(kinds: Kinds, deps: ComposerDeps, onFailure: (error: Error, name: string) => void) {
    const { publicUrl, webUrl, accountUrl, productName, languages, brand } = deps
    this.#kinds = kinds
    this.#site = { name: productName, host: new URL(publicUrl).host, publicUrl, webUrl, accountUrl }
    this.#templates = deps.templates ?? {}
    this.#files = deps.templateFiles?.templates ?? new Map()
    this.#languages = languages ?? new Languages()
    this.#brand = brand ?? DEFAULT_BRAND
    this.#onFailure = onFailure
  }

  /** `MailSender` checks the types of `values`. */
  compose(name: keyof Kinds & string, locale: string | null, values: readonly unknown[]): Content {
    const kind = this.#kinds[name] as Kinds[string]
    return this.#withLogo(
      this.#fromHost(name, kind, locale, values) ?? this.#composed(name, kind, locale, values),
    )
  }

  #withLogo(content: Content): Content {
    const { logo } = this.#brand
    return typeof logo === 'object' && content.html.includes(LOGO_URL)
      ? { ...content, logo: logo.content }
      : content
  }

  #composed(name: string, kind: MailKind, locale: string | null, values: readonly unknown[]): Content {
    const owned = ownedBy(name, kind)
    const tag = this.#languageOf(name, owned, locale)
    const said = this.#said(kind, owned, tag, values)
    return this.#fromFile(name, tag, said) ?? this.#fromTexts(tag, said)
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

  /** One in which there are files or texts of the kind; else English, as a whole. */
  #languageOf(name: string, owned: OwnedTexts, locale: string | null): string {
    if (locale === null) return DEFAULT_LANGUAGE
    const subject = `${owned.owner}.subject`
    const tags = this.#languages.tags.filter(tag => subject in this.#languages.ownTexts(owned, tag))
    return fitting(locale, [...tags, ...(this.#files.get(name)?.keys() ?? [])]) ?? DEFAULT_LANGUAGE
  }

  #said(kind: MailKind, owned: OwnedTexts, tag: string, values: readonly unknown[]): Said {
    const [given] = values as never[]
    const { name: product, host, publicUrl } = this.#site
    const texts = this.#languages.textsOf(owned, tag) as unknown as MailTexts
    return {
      texts,
      places: { product, host, publicUrl, ...kind.places?.(given as never) },
      more: kind.more?.(texts as never, given as never) ?? [],
      code: kind.code?.(given as never) ?? null,
      link: kind.link?.(this.#site, ...(values as never[])) ?? null,
    }
  }

  /** Of the language or of a shorter form of its tag; `null` if there is none. */
  #fromFile(name: string, tag: string, { places, more, code, link }: Said): Content | null {
    const files = this.#files.get(name)
    const template = shortened(tag)
      .map(form => files?.get(form))
      .find(found => found !== undefined)
    if (template === undefined) return null
    const values = Object.entries(places).map(([place, value]) => [place, String(value)])
    return fillTemplate(template, {
      ...Object.fromEntries(values),
      link: link ?? this.#site.accountUrl,
      code: code ?? '',
      more: more.join('\n'),
      logo: LOGO_URL,
    })
  }

  #fromTexts(tag: string, said: Said): Content {
    const parts = partsOf(said)
    const frame = {
      product: this.#site.name,
      language: tag === DEFAULT_LANGUAGE ? 'en-GB' : tag,
      texts: this.#languages.textsOf(FRAME_TEXTS, tag),
      brand: this.#brand,
    }
    return { subject: parts.subject, text: textOf(parts, frame), html: htmlOf(parts, frame) }
  }
}

interface MailedBrand extends Pick<MailBrand, 'supportUrl' | 'privacyUrl'> {
  readonly colors: { readonly light: Pick<MailBrand, 'fill' | 'onFill'> }
  readonly logo: (MailLogo & { readonly extension: string }) | null
}

/** The settings that mails follow from. */
interface MailedSettings extends Pick<MailSite, 'publicUrl' | 'accountUrl'> {
  readonly productName: string
  readonly pagesUrl: string
  readonly brand: MailedBrand
}

const logoOf = ({ logo }: MailedBrand): MailBrand['logo'] => {
  if (logo === null) return 'letter'
  return logo.extension === 'png' ? logo : 'name'
}

export const composerDepsOf = ({ productName, publicUrl, pagesUrl, accountUrl, brand }: MailedSettings) => {
  const { fill, onFill } = brand.colors.light
  const { supportUrl, privacyUrl } = brand
  return {
    productName,
    publicUrl,
    webUrl: pagesUrl,
    accountUrl,
    brand: { fill, onFill, supportUrl, privacyUrl, logo: logoOf(brand) },
  }
}
