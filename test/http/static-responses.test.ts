import t from 'tap'
import { staticResponse } from '#http/static-responses'

t.test('content is created once, and again after a failure', async t => {
  let calls = 0
  const { content } = staticResponse('text/plain', () => {
    calls += 1
    if (calls === 1) throw new Error('not yet')
    return 'text'
  })
  await t.rejects(content(), { message: 'not yet' })
  const [one, other] = await Promise.all([content(), content()])
  t.equal(one.plain.toString(), 'text')
  t.equal(other, one)
  t.equal(calls, 2)
})
