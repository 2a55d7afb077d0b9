/** Links between hosted pages that keep where they lead back to: to an application, or to another page of the service. */

/** The parameter of pages. */
export const RETURN_TO = 'return_to'

/** The parameter of the sign-in page that shows the form also to a user who is signed in, for a proof of identity. */
export const SIGN_IN_AGAIN = 'again'

/**
 * A URL of a page, with where it leads back to.
 * @param path with a query, if any. @param returnTo a URL that was checked; `null`: nowhere.
 */
export const withReturn = (path: string, { returnTo }: { readonly returnTo: string | null }): string =>
  returnTo === null
    ? path
    : `${path}${path.includes('?') ? '&' : '?'}${RETURN_TO}=${encodeURIComponent(returnTo)}`

/** A page of the service as a target. @param path below the service, with a query, if any. @param publicUrl of the service. */
export const returnToPage = (path: string, publicUrl: string) => ({ returnTo: `${publicUrl}/${path}` })

/** The path of a target that is a page of the service; `null` for another one. */
export const pageOfReturn = (returnTo: string | null, publicUrl: string): string | null =>
  returnTo?.startsWith(`${publicUrl}/`) ? returnTo.slice(publicUrl.length + 1) : null
