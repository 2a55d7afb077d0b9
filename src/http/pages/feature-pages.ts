/**
 * What pages of features are made of, and what a feature adds to the hosted pages besides pages of its own, which are routes.
 * docs/extending.md lists it. Host applications import it as `gatehouse/pages`.
 */
import type { OwnedTexts } from '#base/texts'
import type { Html } from './html.ts'
import type { PageContext, SignInPart } from './layout.ts'

/** Sections of the account page to which features add rows: ways to sign in, factors, and what has access to the account. */
export type SharedSection = 'signIn' | 'secondStep' | 'applications'

/** A section of a feature's own. */
export interface OwnSection {
  readonly title: (context: PageContext) => string
  /** A sentence below the title. */
  readonly text?: (context: PageContext) => string
}

/** What a feature adds to the account page. */
export interface SecuritySection {
  /** The path of the API whose response it shows, such as `/account/notes`. */
  readonly path: string
  readonly section: SharedSection | OwnSection
  /**
   * The rows of a card: `row`, `formRow`, `itemRow` or `linkRow`. A section without rows is left out.
   * @param body of the response.
   */
  // biome-ignore lint/suspicious/noExplicitAny: as in `ApiResponse`
  readonly rows: (context: PageContext, body: any) => readonly Html[]
}

/** The default export of the module that `pages` of a feature imports, or what it returns for the settings. */
export interface FeaturePages {
  /**
   * What `defineTexts` returns. `errors` are those of the feature for people, by their names; others are shown as the API has them.
   * `notices` is what the security page says once, after `reply.redirectToPage('security', name)`.
   */
  readonly texts?: OwnedTexts
  readonly security?: SecuritySection
  /** A module of JavaScript for the sign-in page and the security page: `new URL('page-script.js', import.meta.url)`. */
  readonly script?: URL
  /** A module of JavaScript and a stylesheet for the feature's own pages, which name them with `Page.assetsOf`. */
  readonly assets?: { readonly script: URL; readonly style: URL }
  /** By the names of the feature's sign-in methods. A method that is switched off is left out. */
  readonly signIn?: Readonly<Record<string, SignInPart>>
}

export type { FieldErrors } from '#base/errors'
export { defineTexts, fill } from '#base/texts'
export type { ApiCall, ApiResponse } from './api-calls.ts'
export * from './console-parts.ts'
export {
  avatar,
  backToSecurity,
  button,
  type Field,
  Form,
  formPage,
  Html,
  hiddenField,
  html,
  links,
  messagePage,
  NO_ERRORS,
  type Page,
  type PageContext,
  time,
  usernameField,
} from './layout.ts'
export { badge, formRow, itemRow, linkRow, row, rowList } from './rows.ts'
export { errorPage } from './signed-out.ts'
