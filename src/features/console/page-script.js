/** Enhances the console. Every page works without it. */

/** Milliseconds between two refreshes, however many events there are. */
const PACE = 1_000

/**
 * Follows the audit log: an event makes the page read itself again. The server renders it, as it does without script.
 * @param rows the section that is replaced, with the URL of the stream and the texts of the button.
 */
const follow = rows => {
  const { live, following, pause, follow: resume, pace = PACE } = rows.dataset
  const bar = document.createElement('div')
  const status = document.createElement('span')
  const button = document.createElement('button')
  bar.className = 'live'
  status.setAttribute('role', 'status')
  button.className = 'compact'
  button.type = 'button'
  bar.append(status, button)
  document.querySelector('.page-head').append(bar)
  let source = null
  let timer = null

  const refresh = async () => {
    timer = null
    // The header says that nobody uses the page: the session may end.
    const response = await fetch(location.href, { headers: { 'console-refresh': '1' } })
    if (!response.ok || response.redirected) return stop()
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const found = page.getElementById(rows.id)
    // What somebody reads stays.
    if (found === null || rows.contains(document.activeElement) || rows.querySelector('details[open]')) return
    rows.replaceChildren(...found.childNodes)
  }
  const show = () => {
    status.textContent = source === null ? '' : following
    button.textContent = source === null ? resume : pause
  }
  const stop = () => {
    source?.close()
    source = null
    show()
  }
  const start = () => {
    source = new EventSource(live)
    source.onmessage = () => {
      if (timer === null) timer = setTimeout(refresh, Number(pace))
    }
    // Refused, because the session has ended for example. Other failures repeat themselves.
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) stop()
    }
    show()
  }
  button.addEventListener('click', () => (source === null ? start() : stop()))
  start()
}

const rows = document.querySelector('[data-live]')
if (rows !== null) follow(rows)

/** Checks or unchecks every row of a table. */
for (const box of document.querySelectorAll('[data-script="check-all"]')) {
  const rows = () => box.closest('table').querySelectorAll('tbody .pick input')
  box.addEventListener('change', () => {
    for (const row of rows()) row.checked = box.checked
  })
  box.closest('table').addEventListener('change', () => {
    const checked = [...rows()].map(row => row.checked)
    box.checked = checked.every(Boolean)
    box.indeterminate = !box.checked && checked.some(Boolean)
  })
}
