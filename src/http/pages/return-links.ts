/** Links between hosted pages that keep where they lead back to: to an application, or to another page of the service. */

/** The parameter of pages. */
export const RETURN_TO = 'return_to'

/** The parameter of the sign-in page that shows the form also to a user who is signed in, for a proof of identity. */
export const SIGN_IN_AGAIN = 'again'

/** The parameter of pages that names their languages, the best first: tags of BCP 47, separated by spaces (OpenID Connect Core §3.1.2.1). */
const UI_LOCALES = 'ui_locales'

/** Tags that count. */
const MAX_LOCALES = 10

const withParameter = (path: string, name: string, value: string): string =>
  `${path}${path.includes('?') ? '&' : '?'}${name}=${encodeURIComponent(value)}`

/**
 * A URL of a page, with where it leads back to.
 * @param path with a query, if any. @param returnTo a URL that was checked; `null`: nowhere.
 */
export const withReturn = (path: string, { returnTo }: { readonly returnTo: string | null }): string =>
  returnTo === null ? path : withParameter(path, RETURN_TO, returnTo)

/** A URL of a page in one of these languages. The pages that lead back to it have the same. @param path with a query, if any. */
export const withLocales = (path: string, locales: readonly string[]): string =>
  locales.length === 0 ? path : withParameter(path, UI_LOCALES, locales.join(' '))

/** A page of the service as a target. @param path below the service, with a query, if any. @param publicUrl of the service. */
export const returnToPage = (path: string, publicUrl: string) => ({ returnTo: `${publicUrl}/${path}` })

/** The path of a target that is a page of the service; `null` for another one. */
export const pageOfReturn = (returnTo: string | null, publicUrl: string): string | null =>
  returnTo?.startsWith(`${publicUrl}/`) ? returnTo.slice(publicUrl.length + 1) : null

/** The languages that a page is asked for, by its own URL or by that of the page that it leads back to. */
export const localesOf = (
  query: Readonly<Record<string, unknown>>,
  returnTo: string | null,
  publicUrl: string,
): readonly string[] => {
  const { [UI_LOCALES]: own } = query
  const ofTarget = (): string | null =>
    returnTo === null || pageOfReturn(returnTo, publicUrl) === null
      ? null
      : new URL(returnTo).searchParams.get(UI_LOCALES)
  const tags = (typeof own === 'string' ? own : ofTarget())?.split(' ') ?? []
  return tags.filter(tag => tag !== '').slice(0, MAX_LOCALES)
}
