/** The texts of pages: every language has the places of the English text. */
import t from 'tap'
import { fill, flatten, Languages, type OwnedTexts, placesOf, type TextTree } from '#base/texts'
import type { Feature } from '#feature/declaration'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { fillHtml, html } from '#http/pages/html'
import { CORE_TEXTS } from '#http/pages/texts'

const SETTINGS = { CONSOLE: 'on', OIDC_PROVIDERS: [] }

const ownedTexts = async (): Promise<OwnedTexts[]> => {
  const ofFeatures = BUILT_IN_FEATURES.map(async ({ pages }: Feature) => {
    const { default: exported } = (await pages?.()) ?? { default: {} }
    return (typeof exported === 'function' ? exported(SETTINGS) : exported).texts ?? []
  })
  return [CORE_TEXTS, ...(await Promise.all(ofFeatures)).flat()]
}

t.test('a translation has every text of the English, with the same places', async t => {
  const all = await ownedTexts()
  t.ok(all.length > 5)
  for (const { owner, en, de } of all) {
    const german = new Map(flatten(de as TextTree, owner))
    for (const [key, text] of flatten(en, owner))
      t.same([...placesOf(german.get(key) ?? '')].sort(), [...placesOf(text)].sort(), key)
    t.equal(german.size, flatten(en, owner).length, owner)
  }
})

t.test('a language has its own texts, then the English', async t => {
  const texts = {
    owner: 'notes',
    en: { title: 'Notes', more: { one: 'One {thing}' } },
    de: { title: 'Notizen', more: { one: '{thing}: eins' } },
  }
  const languages = new Languages(
    new Map([
      ['fr', { 'notes.more.one': 'Un {thing}' }],
      ['de', { 'notes.title': 'Zettel' }],
    ]),
  )
  t.strictSame(languages.tags, ['en', 'de', 'fr'])
  t.strictSame(languages.textsOf(texts, 'en'), texts.en)
  t.strictSame(languages.textsOf(texts, 'fr'), { title: 'Notes', more: { one: 'Un {thing}' } })
  t.strictSame(languages.textsOf(texts, 'de'), { title: 'Zettel', more: { one: '{thing}: eins' } })
  t.equal(
    languages.accepted(() => 'fr'),
    'fr',
  )
  t.equal(
    languages.accepted(() => false),
    'en',
  )
})

t.test('values fill places as they are, also those that look like places', async t => {
  t.equal(fill('{a} and {b}, {a}', { a: '{b}', b: '$&' }), '{b} and $&, {b}')
  t.equal(fillHtml('<{a}>', { a: html`<b>${'<'}</b>` }).text, '&lt;<b>&lt;</b>&gt;')
})
