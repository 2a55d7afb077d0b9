/** The cache of compiled response schemas. */
import t from 'tap'
import { serializerFactory } from '#http/serializer-compiler'

const buildSerializer = serializerFactory('development')

const route = (schema: object) => ({ method: 'GET', url: '/notes', httpStatus: '200', schema })

t.test('equal response schemas are compiled once, for all apps', async t => {
  const compile = () =>
    buildSerializer({})(route({ type: 'object', properties: { name: { type: 'string' } } }))
  t.equal(compile(), compile())
  t.equal(compile()({ name: 'Ann', secret: 'x' }), '{"name":"Ann"}')
})

t.test('a reference is to the schema that the app has added', async t => {
  const schema = { type: 'object', properties: { age: { $ref: 'age#' } } }
  const serialize = (type: string) => buildSerializer({ age: { $id: 'age', type } })(route(schema))
  t.equal(serialize('string')({ age: 7 }), '{"age":"7"}')
  t.equal(serialize('integer')({ age: 7 }), '{"age":7}')
})
