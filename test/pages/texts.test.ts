/** The texts of pages: every language has the places of the English text. */
import t from 'tap'
import { fill, flatten, Languages, type OwnedTexts, placesOf, type TextTree } from '#base/texts'
import { allTexts } from '#feature/texts'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { fillHtml, html } from '#http/pages/html'

const SETTINGS = { CONSOLE: 'off', OIDC_PROVIDERS: [] }

/** Only the operator gets this mail, in English. */
const IS_TRANSLATED = ({ owner }: OwnedTexts): boolean => owner !== 'mails.webhookDisabled'

t.test('a translation has every text of the English, with the same places', async t => {
  const all = (await allTexts(BUILT_IN_FEATURES, SETTINGS)).filter(IS_TRANSLATED)
  t.ok(all.length > 40)
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
      ['de-AT', { 'notes.more.one': 'a {thing}' }],
      ['en', { 'notes.title': 'Jottings' }],
    ]),
  )
  t.strictSame(languages.tags, ['en', 'de', 'fr', 'de-AT'])
  t.strictSame(languages.textsOf(texts, 'en'), { ...texts.en, title: 'Jottings' })
  t.strictSame(languages.textsOf(texts, 'fr'), { title: 'Jottings', more: { one: 'Un {thing}' } })
  t.strictSame(languages.textsOf(texts, 'de'), { title: 'Zettel', more: { one: '{thing}: eins' } })
  t.strictSame(languages.textsOf(texts, 'de-AT'), { title: 'Zettel', more: { one: 'a {thing}' } })
  t.strictSame(languages.ownTexts(texts, 'fr'), { 'notes.more.one': 'Un {thing}' })
})

t.test('a region that has no texts has those of its language', async t => {
  const languages = new Languages(
    new Map([
      ['fr', {}],
      ['pt-BR', {}],
      ['zh-Hant', {}],
    ]),
  )
  for (const [tags, language] of [
    [['fr-CA', 'en'], 'fr'],
    [['FR-ca'], 'fr'],
    [['pt-BR'], 'pt-BR'],
    [['pt-PT', 'de'], 'pt-BR'],
    [['zh-Hant-TW'], 'zh-Hant'],
    [['de-AT-1996'], 'de'],
    [['it', 'de-CH', 'fr'], 'de'],
    [['it', '*', 'de'], 'en'],
    [['it'], 'en'],
    [['f'], 'en'],
    [[], 'en'],
  ] as const)
    t.equal(languages.preferred(tags), language, tags.join())
})

t.test('values fill places as they are, also those that look like places', async t => {
  t.equal(fill('{a} and {b}, {a}', { a: '{b}', b: '$&' }), '{b} and $&, {b}')
  t.equal(fillHtml('<{a}>', { a: html`<b>${'<'}</b>` }).text, '&lt;<b>&lt;</b>&gt;')
})
