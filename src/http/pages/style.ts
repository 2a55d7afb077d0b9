/** The stylesheet of the hosted pages: no font, image or other file, light and dark, from 320 px of width. */
export const STYLE = `:root {
  color-scheme: light dark;
  --page: #f3f4f6;
  --card: #ffffff;
  --text: #1b1f24;
  --muted: #57606a;
  --line: #d5dae1;
  --field: #767f8a;
  --accent: #0b57d0;
  --on-accent: #ffffff;
  --danger: #b3261e;
  --danger-card: #fdecea;
  --done-card: #e6f4ea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1318;
    --card: #181d24;
    --text: #e6e9ee;
    --muted: #a8b1bd;
    --line: #313944;
    --field: #7d8794;
    --accent: #8ab4f8;
    --on-accent: #10213d;
    --danger: #f4b4ae;
    --danger-card: #3a1d1b;
    --done-card: #17301f;
  }
}
*, *::before, *::after { box-sizing: border-box; }
body {
  margin: 0;
  padding: 1rem;
  background: var(--page);
  color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere;
}
header, main { width: 100%; max-width: 27rem; margin: 0 auto; }
.wide header, .wide main { max-width: 46rem; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between; min-height: 2.75rem; margin-bottom: .75rem; }
.product { margin: 0; font-weight: 600; }
section, .card {
  margin: 0 0 1rem;
  padding: 1.25rem;
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: .75rem;
}
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
.wide h1 { margin-top: .5rem; }
h2 { margin: 0 0 .5rem; font-size: 1.15rem; line-height: 1.3; }
p { margin: 0 0 .75rem; }
a { color: var(--accent); }
form { margin: 0; }
main p + form, ul + form, form + form, form + p { margin-top: 1rem; }
label, legend { display: block; margin: 0 0 .25rem; padding: 0; font-weight: 600; }
.field { margin: 0 0 1rem; }
.hint, .muted { color: var(--muted); font-size: .9rem; }
.hint { margin: 0 0 .25rem; }
input:not([type=checkbox]), select {
  width: 100%;
  min-height: 2.75rem;
  padding: .5rem .75rem;
  border: 1px solid var(--field);
  border-radius: .5rem;
  background: var(--card);
  color: var(--text);
  font: inherit;
}
input[aria-invalid] { border-color: var(--danger); border-width: 2px; }
fieldset { margin: 0 0 1rem; padding: 0; border: 0; min-width: 0; }
.check { display: flex; gap: .6rem; align-items: center; min-height: 2rem; font-weight: 400; }
.check input { width: 1.25rem; height: 1.25rem; flex: none; margin: 0; accent-color: var(--accent); }
button {
  min-height: 2.75rem;
  padding: .5rem 1.1rem;
  border: 1px solid var(--accent);
  border-radius: .5rem;
  background: var(--accent);
  color: var(--on-accent);
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}
.main { width: 100%; }
.plain { background: transparent; color: var(--accent); }
.danger { border-color: var(--danger); background: transparent; color: var(--danger); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.summary, .done { margin: 0 0 1rem; padding: .9rem 1rem; border-radius: .5rem; }
.summary { background: var(--danger-card); border: 1px solid var(--danger); }
.summary h2 { font-size: 1rem; margin: 0 0 .25rem; }
.summary ul { margin: 0; padding: 0 0 0 1.1rem; }
.summary a { color: inherit; }
.done { background: var(--done-card); border: 1px solid var(--line); }
.done p { margin: 0; }
.error { margin: .25rem 0 0; color: var(--danger); font-weight: 600; }
.list { list-style: none; margin: 0 0 1rem; padding: 0; }
.list li { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between; padding: .75rem 0; border-top: 1px solid var(--line); }
.list li > div { flex: 1 1 14rem; min-width: 0; }
.list p { margin: 0; }
.tag { display: inline-block; padding: 0 .5rem; border: 1px solid var(--line); border-radius: 1rem; font-size: .85rem; font-weight: 400; }
.links { list-style: none; margin: 1rem 0 0; padding: 0; }
.links li { margin: 0 0 .25rem; }
.or { display: flex; align-items: center; gap: .75rem; margin: 1rem 0; color: var(--muted); }
.or::before, .or::after { content: ''; flex: 1; border-top: 1px solid var(--line); }
code, .codes { font: .95rem/1.6 ui-monospace, monospace; }
.secret { display: block; padding: .6rem .75rem; border: 1px solid var(--line); border-radius: .5rem; user-select: all; }
.codes { margin: 0 0 1rem; padding: .75rem; border: 1px solid var(--line); border-radius: .5rem; list-style: none; white-space: nowrap; font-size: clamp(.7rem, 3.7vw, .95rem); }
.qr { display: block; width: 15rem; max-width: 100%; height: auto; margin: 0 auto 1rem; background: #ffffff; border-radius: .5rem; }
section > :last-child, .card > :last-child, form > :last-child { margin-bottom: 0; }
[hidden] { display: none; }
`
