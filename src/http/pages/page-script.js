/** Conveniences of the hosted pages and the console. Nothing depends on them: without script, the style sheet hides their buttons. */

const showPassword = button => {
  const field = document.getElementById(button.getAttribute('aria-controls'))
  button.addEventListener('click', () => {
    const isShown = field.type === 'text'
    field.type = isShown ? 'password' : 'text'
    button.setAttribute('aria-pressed', String(!isShown))
  })
  // Otherwise a browser may keep the password among the entries of forms.
  field.form?.addEventListener('submit', () => {
    field.type = 'password'
  })
}

/** Copies the text of the elements that `data-copy` names, or of the one before the button, and says so. */
const copy = button => {
  const { copy: selector, copied } = button.dataset
  button.addEventListener('click', async () => {
    const source = selector === undefined ? button.previousElementSibling : document.querySelector(selector)
    const items = source.querySelectorAll('li')
    const text =
      items.length === 0 ? source.textContent : Array.from(items, item => item.textContent).join('\n')
    await navigator.clipboard.writeText(text)
    const status = document.createElement('span')
    status.setAttribute('role', 'status')
    status.className = 'copied'
    button.append(status)
    status.textContent = copied
    setTimeout(() => status.remove(), 2_000)
  })
}

const print = button => button.addEventListener('click', () => globalThis.print())

/** Characters without those that only continue a repetition or a sequence, such as `aaaa` and `1234`. */
const effectiveLength = password => {
  const codes = Array.from(password, character => character.codePointAt(0))
  return codes.filter((code, index) => index === 0 || Math.abs(code - codes[index - 1]) > 1).length
}

/** Says in words how hard the password is to guess. The rules are the server's; this looks at lengths alone. */
const strength = text => {
  const field = document.getElementById(text.dataset.for)
  const words = text.dataset.words.split(', ')
  const least = Number(text.dataset.least)
  const levelOf = password => {
    if (Array.from(password).length < least) return 0
    const length = effectiveLength(password)
    return 1 + Number(length >= least + 2) + Number(length >= least + 8)
  }
  field.addEventListener('input', () => {
    const level = levelOf(field.value)
    text.textContent = field.value === '' ? '' : words[level]
    text.dataset.level = String(level)
  })
}

const ACTIONS = { 'show-password': showPassword, copy, print, strength }

for (const element of document.querySelectorAll('[data-script]')) ACTIONS[element.dataset.script]?.(element)
