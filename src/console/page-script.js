/** Enhances the console. Every page works without it. */

/** Times of the server are in UTC; a title keeps that. */
const showLocalTimes = within => {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, {
    dateStyle: 'medium',
    timeStyle: 'medium',
  })
  for (const element of within.querySelectorAll('time:not([title])')) {
    element.title = element.textContent
    element.textContent = format.format(new Date(element.dateTime))
  }
}

showLocalTimes(document)
