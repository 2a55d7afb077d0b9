/** O11, G7: which URLs the hosted pages lead back to. */

import t from 'tap'
import { MAX_RETURN_URL, returnUrl } from '#core/return-targets/return-url'

const ORIGINS = new Set(['https://app.example.com', 'http://localhost:3000'])

const FOREIGN = [
  ...['', ' ', '/', '//', '//e.example', '///e.example', '////e.example', '/\\e.example', '\\\\e.example'],
  ...['/path', 'path', '?x', '#x', '.', '..', 'app.example.com', '//app.example.com', 'e.example'],
  ...[
    'https:e.example',
    'https:/e.example',
    'https:///e.example',
    'https:\\e.example',
    'https:\\\\e.example',
  ],
  ...[
    'https:app.example.com',
    'https:/app.example.com',
    'https:///app.example.com',
    'https:\\\\app.example.com',
  ],
  ...['https://e.example', 'https://e.example/app.example.com', 'https://e.example?https://app.example.com'],
  ...[
    'https://e.example#https://app.example.com',
    'https://app.example.com.e.example',
    'https://eapp.example.com',
  ],
  ...[
    'https://app.example.com@e.example',
    'https://app.example.com:x@e.example',
    'https://e@app.example.com',
  ],
  ...['https://e.example@app.example.com', 'https://a@b@app.example.com', 'https://:x@app.example.com'],
  ...[
    'https://app.example.com\\@e.example',
    'https://app.example.com\\.e.example',
    'https://e.example\\app.example.com',
  ],
  ...[
    'https://app.example.com%2f@e.example',
    'https://app.example.com%00.e.example',
    'https://app.example.com%0d%0a',
  ],
  ...[
    'https://app.example.com\r\nLocation: //e',
    'https://app.example.com/\r\n',
    'https://app.example.com/\0',
  ],
  ...[
    'https://\tapp.example.com',
    'ht\ttps://app.example.com',
    ' https://app.example.com',
    'https://app.example.com ',
  ],
  ...['\u0000https://app.example.com', 'https://app.example.com/\u202e', 'https://app.exa\u00admple.com'],
  ...[
    'https://app.example.com:8443',
    'http://app.example.com',
    'https://app.example.com.',
    'https://localhost:3000',
  ],
  ...[
    'http://localhost',
    'http://127.0.0.1:3000',
    'http://[::1]:3000',
    'https://example.com',
    'https://*.example.com',
  ],
  ...[
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    'javascript://app.example.com/%0aalert(1)',
  ],
  ...[
    'data:text/html,x',
    'blob:https://app.example.com/x',
    'filesystem:https://app.example.com/x',
    'vbscript:x',
  ],
  ...[
    'ftp://app.example.com',
    'ws://app.example.com',
    'wss://app.example.com',
    'file:///etc/passwd',
    'about:blank',
  ],
  ...[
    'view-source:https://app.example.com',
    'intent://app.example.com',
    'mailto:e@e.example',
    'https://',
    'http://',
  ],
  ...[
    'https://[app.example.com]',
    'https://app.example.com:99999',
    'https://app．example．com．e.example',
    'null',
  ],
]

t.test('O11, G7: no other spelling than an absolute URL of an allowed origin', async t => {
  t.ok(FOREIGN.length >= 60, `${FOREIGN.length} spellings`)
  for (const text of FOREIGN) t.equal(returnUrl(text, ORIGINS), null, JSON.stringify(text))
})

t.test('a URL comes back as browsers read it', async t => {
  const same = [
    'https://app.example.com/',
    'https://app.example.com/a/b?c=d&e=%2F%2Fe.example#/f',
    'http://localhost:3000/x',
  ]
  for (const text of same) t.equal(returnUrl(text, ORIGINS), text)
  t.equal(returnUrl('HTTPS://APP.Example.COM:443/a/../b', ORIGINS), 'https://app.example.com/b')
  t.equal(returnUrl('https://app.example.com?q="<>', ORIGINS), 'https://app.example.com/?q=%22%3C%3E')
})

t.test('at most 2,048 characters, before and after encoding', async t => {
  const start = 'https://app.example.com/'
  const fill = (character: string, count: number) => start + character.repeat(count)
  t.ok(returnUrl(fill('a', MAX_RETURN_URL - start.length), ORIGINS))
  t.equal(returnUrl(fill('a', MAX_RETURN_URL - start.length + 1), ORIGINS), null)
  t.equal(returnUrl(fill('ä', 1_000), ORIGINS), null)
})
