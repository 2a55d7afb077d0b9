/** A browser without script, for tests by inject: it keeps cookies, follows redirects, and submits forms as they are. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'

interface Form {
  readonly action: string
  /** Hidden fields and what is entered already. */
  readonly values: Readonly<Record<string, string>>
  readonly names: readonly string[]
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

const decode = (text: string): string => text.replace(/&(#?\w+);/g, (all, name) => ENTITIES[name] ?? all)

const attributesOf = (tag: string): Record<string, string> =>
  Object.fromEntries(
    Array.from(tag.matchAll(/([\w-]+)="([^"]*)"/g), ([, name = '', value = '']) => [name, decode(value)]),
  )

/** The option that is chosen when the page opens. */
const selectsIn = (form: string): (readonly [string, string])[] =>
  Array.from(form.matchAll(/<select[^>]*>[\s\S]*?<\/select>/g), ([text]) => {
    const chosen = /<option[^>]* selected>/.exec(text)?.[0] ?? ''
    return [attributesOf(text).name ?? '', attributesOf(chosen).value ?? '']
  })

const textareasIn = (form: string): (readonly [string, string])[] =>
  Array.from(form.matchAll(/<textarea[^>]*>\n?([\s\S]*?)<\/textarea>/g), ([tag, text = '']) => [
    attributesOf(tag).name ?? '',
    decode(text),
  ])

/** The forms of a page; one with a button that submits it elsewhere counts for each target. */
const formsIn = (page: string): Form[] =>
  [...page.matchAll(/<form[^>]*>[\s\S]*?<\/form>/g)].flatMap(([text]) => {
    const fields = Array.from(
      text.matchAll(/<input[^>]*>/g),
      ([tag]) => ({ ...attributesOf(tag), tag }) as Record<string, string>,
    ).filter(({ name }) => name !== undefined)
    const others = [...selectsIn(text), ...textareasIn(text)]
    const actions = [
      attributesOf(/<form[^>]*>/.exec(text)?.[0] ?? '').action ?? '',
      ...Array.from(text.matchAll(/<button[^>]*>/g), ([tag]) => attributesOf(tag).formaction ?? []).flat(),
    ]
    return actions.map(action => ({
      action,
      values: Object.fromEntries([
        ...fields
          .filter(({ type, tag = '' }) => type !== 'checkbox' || / checked/.test(tag))
          .map(({ name = '', value, type }) => [name, value ?? (type === 'checkbox' ? 'on' : '')]),
        ...others,
      ]),
      names: [...fields, ...others.map(([name]) => ({ name }))].map(({ name = '' }) => name),
    }))
  })

export interface FormClientOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly remoteAddress?: string
  /** Changes the `Cookie` header, as cookies of another host of the domain do. */
  readonly changeCookies?: (header: string) => string
}

export class FormClient {
  readonly #app: FastifyInstance
  readonly #options: FormClientOptions
  readonly #cookies = new Map<string, string>()
  #url = 'http://gatehouse.test/'
  page = ''
  /** Of the last response that was no redirect. */
  response: LightMyRequestResponse | null = null

  constructor(app: FastifyInstance, options: FormClientOptions = {}) {
    this.#app = app
    this.#options = options
  }

  get path(): string {
    return new URL(this.#url).pathname
  }

  get heading(): string {
    return decode(/<h1>(.*?)<\/h1>/.exec(this.page)?.[1] ?? '')
  }

  get status(): number {
    return this.response?.statusCode ?? 0
  }

  cookie(name: string): string | undefined {
    return this.#cookies.get(name)
  }

  /** The same browser with the same page, whose form can be sent again: as by a second click, or on another device. */
  twin(): FormClient {
    const twin = new FormClient(this.#app, this.#options)
    twin.#url = this.#url
    twin.page = this.page
    for (const [name, value] of this.#cookies) twin.#cookies.set(name, value)
    return twin
  }

  open(url: string): Promise<this> {
    return this.#go('GET', url)
  }

  /** @param action the end of the form's URL. @param values in place of those that the form has. */
  submit(action: string, values: Readonly<Record<string, string>> = {}, number = 0): Promise<this> {
    const form = formsIn(this.page).filter(each =>
      [each.action, each.action.split('?', 1)[0]].some(target => target?.endsWith(action)),
    )[number]
    if (form === undefined) throw new Error(`no form ${action} in ${this.page}`)
    const unknown = Object.keys(values).find(name => !form.names.includes(name))
    if (unknown !== undefined) throw new Error(`no field ${unknown} in the form ${action}`)
    return this.#go('POST', form.action, new URLSearchParams({ ...form.values, ...values }).toString())
  }

  /** Opens the first link with this text. */
  follow(text: string): Promise<this> {
    const [, target] =
      [...this.page.matchAll(/<a[^>]* href="([^"]*)"[^>]*>([^<]*)<\/a>/g)].find(
        ([, , own]) => own === text,
      ) ?? []
    if (target === undefined) throw new Error(`no link ${text} in ${this.page}`)
    return this.#go('GET', decode(target))
  }

  /** Sends what no form of the page has filled in like this. */
  post(url: string, values: Readonly<Record<string, string>>): Promise<this> {
    return this.#go('POST', url, new URLSearchParams(values).toString())
  }

  async #go(method: 'GET' | 'POST', target: string, payload?: string): Promise<this> {
    this.#url = new URL(target, this.#url).href
    const { pathname, search, host } = new URL(this.#url)
    const { changeCookies = header => header } = this.#options
    const own = Array.from(this.#cookies, ([name, value]) => `${name}=${encodeURIComponent(value)}`)
    const cookies = changeCookies(own.join('; '))
    const response = await this.#app.inject({
      method,
      url: pathname + search,
      ...(this.#options.remoteAddress !== undefined && { remoteAddress: this.#options.remoteAddress }),
      headers: {
        host,
        accept: 'text/html',
        'accept-language': 'en',
        ...this.#options.headers,
        ...(cookies !== '' && { cookie: cookies }),
        ...(payload !== undefined && {
          'content-type': 'application/x-www-form-urlencoded',
          origin: new URL(this.#url).origin,
        }),
      },
      ...(payload !== undefined && { payload }),
    })
    for (const { name, value } of response.cookies)
      if (value === '') this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    if (response.statusCode === 303) return this.#go('GET', String(response.headers.location))
    this.response = response
    this.page = response.body
    return this
  }
}
