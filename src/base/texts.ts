/**
 * Texts for people, in every language. Their owner, the core or a feature, declares them in English and German; `TEXTS` adds languages
 * and replaces texts by files (`text-files.ts`).
 */

export interface TextTree {
  readonly [name: string]: string | TextTree
}

/** The same names, with other texts. */
export type Translation<Tree> = {
  readonly [Name in keyof Tree]: Tree[Name] extends string ? string : Translation<Tree[Name]>
}

/** The names of the places of a text: `email` of `'Signed in as {email}'`. A text that is not literal can have any. */
type Places<Text extends string> = string extends Text
  ? string
  : Text extends `${string}{${infer Name}}${infer Rest}`
    ? Name | Places<Rest>
    : never

const PLACE = /\{(\w+)\}/g

export const placesOf = (text: string): string[] => [...text.matchAll(PLACE)].map(([, name = '']) => name)

/** A text with its places filled: `fill('Signed in as {email}', { email })`. The type of a literal text says which places it has. */
export const fill = <Text extends string>(
  text: Text,
  values: Readonly<Record<Places<Text>, string | number>>,
): string => fillParts(text, values).join('')

/** The parts of a text in their order: its own words, and the values of its places. */
export const fillParts = <Value>(text: string, values: Readonly<Record<string, Value>>): (string | Value)[] =>
  text.split(PLACE).map((part, index) => (index % 2 === 0 ? part : (values[part] ?? `{${part}}`)))

export const DEFAULT_LANGUAGE = 'en'

const BUILT_IN_LANGUAGES = [DEFAULT_LANGUAGE, 'de']

/** The texts of one owner, see {@link defineTexts}. */
export interface OwnedTexts<English extends TextTree = TextTree> {
  /** That of the feature; `core`. */
  readonly owner: string
  readonly en: English
  readonly de: Translation<English>
}

/**
 * Declares texts. Values of users stand in places, such as `{email}`, never in front of a text or behind it, because languages differ in
 * their order of words.
 *
 *     const TEXTS = defineTexts('notes', {
 *       en: { title: 'Notes', count: 'You have {count} notes.' },
 *       de: { title: 'Notizen', count: 'Sie haben {count} Notizen.' },
 *     })
 *
 * @param owner the name of the feature.
 */
export const defineTexts = <const English extends TextTree>(
  owner: string,
  texts: { readonly en: English; readonly de: Translation<English> },
): OwnedTexts<English> => ({ owner, ...texts })

/** Texts by their keys, such as `notes.title`: what a file of `TEXTS` has. */
export type TextFile = Readonly<Record<string, string>>

/** All texts of a tree by their keys. */
export const flatten = (tree: TextTree, key: string): [key: string, text: string][] =>
  Object.entries(tree).flatMap(([name, value]) =>
    typeof value === 'string'
      ? [[`${key}.${name}`, value] as [string, string]]
      : flatten(value, `${key}.${name}`),
  )

const byKey = (tree: TextTree, owner: string): TextFile => Object.fromEntries(flatten(tree, owner))

const builtIn = ({ owner, en, de }: OwnedTexts, tag: string): TextFile => {
  if (tag === DEFAULT_LANGUAGE) return byKey(en, owner)
  return tag === 'de' ? byKey(de as TextTree, owner) : {}
}

/** The English tree with other texts. */
const withTexts = (english: TextTree, texts: TextFile, key: string): TextTree =>
  Object.fromEntries(
    Object.entries(english).map(([name, text]) => {
      const path = `${key}.${name}`
      return [name, typeof text === 'string' ? (texts[path] ?? text) : withTexts(text, texts, path)]
    }),
  )

/** A tag and its shorter forms (RFC 4647 §3.4): `zh-Hant-TW`, `zh-Hant`, `zh`. */
export const shortened = (tag: string): string[] => {
  const parts = tag.split('-')
  return parts.map((_, index) => parts.slice(0, parts.length - index).join('-'))
}

/**
 * The language for a tag such as `fr-CA`: it or a shorter form of it, else another region of the same language. `undefined` if there is
 * none.
 */
export const fitting = (tag: string, languages: readonly string[]): string | undefined => {
  const forms = shortened(tag.toLowerCase())
  const found = forms.map(form => languages.find(each => each.toLowerCase() === form))
  return (
    found.find(each => each !== undefined) ?? languages.find(each => each.split('-', 1)[0] === forms.at(-1))
  )
}

/** The languages of a service: English, German, and those of `TEXTS`. */
export class Languages {
  readonly #files: ReadonlyMap<string, TextFile>
  /** By language, the texts of each owner. */
  readonly #texts = new Map<string, Map<OwnedTexts, TextTree>>()
  /** Tags of BCP 47. */
  readonly tags: readonly string[]

  /** @param files by language, see `readTextFiles`. */
  constructor(files: ReadonlyMap<string, TextFile> = new Map()) {
    this.#files = files
    this.tags = [...new Set([...BUILT_IN_LANGUAGES, ...files.keys()])]
  }

  /** @param tags as a reader prefers them, the best first; `*` is any language. */
  preferred(tags: readonly string[]): string {
    for (const tag of tags) {
      const found = tag === '*' ? DEFAULT_LANGUAGE : fitting(tag, this.tags)
      if (found !== undefined) return found
    }
    return DEFAULT_LANGUAGE
  }

  /**
   * Texts by their keys, without those that fall back to English.
   * @param tag one of {@link tags}. A regional one has the texts of its language.
   */
  ownTexts(texts: OwnedTexts, tag: string): TextFile {
    const forms = shortened(tag).toReversed()
    return Object.assign({}, ...forms.flatMap(form => [builtIn(texts, form), this.#files.get(form)]))
  }

  /** @param tag one of {@link tags}. */
  textsOf<English extends TextTree>(texts: OwnedTexts<English>, tag: string): English {
    const ofLanguage = this.#texts.get(tag) ?? new Map<OwnedTexts, TextTree>()
    this.#texts.set(tag, ofLanguage)
    const owned = texts as unknown as OwnedTexts
    const found = ofLanguage.get(owned)
    if (found !== undefined) return found as English
    const all = { ...this.ownTexts(owned, DEFAULT_LANGUAGE), ...this.ownTexts(owned, tag) }
    const made = withTexts(texts.en, all, texts.owner)
    ofLanguage.set(owned, made)
    // Also a translation: its places are those of the English text, which is what its type says.
    return made as English
  }
}
