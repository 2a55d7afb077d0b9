/** Passkeys in the browser: the only script of the hosted pages. Without it, or without passkeys, what it reveals stays hidden. */

const service = new URL('../', import.meta.url)

/** @returns the response of the API to a POST. */
const post = (path, body) =>
  fetch(new URL(path, service), {
    method: 'POST',
    ...(body !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })

const go = path => location.assign(new URL(path, service))

/** @returns the JSON of a response. @throws {Error} if it is none of success. */
const success = async response => {
  if (!response.ok) throw new Error(`the API responded with ${response.status}`)
  return response.json()
}

/** Leads back to the application, if the page was opened for one. The next page checks where. */
const signedIn = () => {
  const returnTo = new URLSearchParams(location.search).get('return_to')
  go(returnTo === null ? 'security?signed-in' : `sign-in/continue?return_to=${encodeURIComponent(returnTo)}`)
}

const requestOptions = async () =>
  PublicKeyCredential.parseRequestOptionsFromJSON(
    await success(await post('account/sign-in/passkey/options')),
  )

const signInWith = async credential => {
  await success(await post('account/sign-in/passkey', { credential: credential.toJSON() }))
  signedIn()
}

/** The offer in the field of the e-mail, which a press of the button replaces. */
let autofill = new AbortController()

const signIn = async () => {
  autofill.abort()
  await signInWith(await navigator.credentials.get({ publicKey: await requestOptions() }))
}

/** Offers passkeys in the field of the e-mail, again before a challenge expires. */
const offerAutofill = async () => {
  autofill = new AbortController()
  const { signal } = autofill
  const publicKey = await requestOptions()
  const expiry = setTimeout(() => {
    autofill.abort()
    offerAutofill().catch(() => {})
  }, publicKey.timeout - 10_000)
  signal.addEventListener('abort', () => clearTimeout(expiry))
  const credential = await navigator.credentials.get({ publicKey, mediation: 'conditional', signal })
  await signInWith(credential)
}

const add = async section => {
  const response = await post('account/passkeys/options')
  // The sign-in is too long ago: the page asks for the password.
  if (
    response.status === 403 &&
    /insufficient_user_auth/.test(response.headers.get('www-authenticate') ?? '')
  )
    return go('security/proof')
  const options = await success(response)
  const credential = await navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
  })
  const name = section.querySelector('input').value.trim()
  await success(
    await post('account/passkeys', { credential: credential.toJSON(), ...(name !== '' && { name }) }),
  )
  const secure = location.protocol === 'https:' ? '; secure' : ''
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser that has passkeys
  document.cookie = `${section.dataset.notice}; path=/; max-age=60; samesite=strict${secure}`
  go('security')
}

/** Reveals a part of the page, whose button starts an action. */
const offer = (id, action) => {
  const section = document.getElementById(id)
  if (section === null) return
  const button = section.querySelector('button')
  const error = section.querySelector('.error')
  button.addEventListener('click', async () => {
    error.hidden = true
    button.disabled = true
    try {
      await action(section)
    } catch {
      error.hidden = false
    } finally {
      button.disabled = false
    }
  })
  section.hidden = false
  document.getElementById(`${id}-needs`)?.remove()
}

if (typeof globalThis.PublicKeyCredential?.parseRequestOptionsFromJSON === 'function') {
  offer('passkey-sign-in', signIn)
  offer('passkey-add', add)
  const hasField = document.querySelector('input[autocomplete~="webauthn"]') !== null
  if (hasField && (await PublicKeyCredential.isConditionalMediationAvailable?.()))
    offerAutofill().catch(() => {})
}
