/** The page of a user: the organizations, their projects, and forms. */
import { html } from '#http/pages/feature-pages'
import { workspaceOf } from './projects.ts'

interface Membership {
  readonly id: string
  readonly name: string
  readonly roles: readonly string[]
}

const nameForm = (action: string, label: string) =>
  html`<form method="post" action="${action}"><label>${label} <input name="name" required maxlength="80"></label> <button>Add</button></form>`

const section = ({ id, name, roles }: Membership) => {
  const { projects, activity } = workspaceOf(id)
  const mayAdd = roles.includes('owner') || roles.includes('admin')
  return html`<section><h2>${name}</h2>
<p>You are ${roles.join(', ')}.</p>
<ul>${projects.map(project => html`<li>${project}</li>`)}</ul>
${mayAdd && nameForm(`/organizations/${id}/projects`, 'New project')}
<p>${activity.map(line => html`${line}<br>`)}</p></section>`
}

export const homePage = (email: string, organizations: readonly Membership[]): string =>
  html`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Projects</title></head><body>
<h1>Projects</h1>
<p>Signed in as ${email}. <a href="/auth/security">Account</a></p>
${organizations.map(section)}
${nameForm('/organizations', 'New organization')}
</body></html>`.text
