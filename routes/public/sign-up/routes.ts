/** The page to sign up. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { type SignUpState, signUpPage, signUpSentPage } from '#http/pages/signed-out'
import { returnToOf } from '../../request-context.ts'
import { FormText, linkedPage, PageParameter, pageForm, prefilledEmail } from '../../schemas.ts'

const signUp: FastifyPluginAsyncTypebox = async app => {
  const { hasSignUpPage, passwordMinLength: minLength, termsUrl } = app.config
  if (!hasSignUpPage) return
  app.servePages()

  const page = (state: SignUpState) => (context: Parameters<typeof signUpPage>[0]) =>
    signUpPage(context, app.signInParts, { minLength, termsUrl }, state)

  app.get('', linkedPage({ email: PageParameter }), (request, reply) =>
    reply.sendPage(page({ email: prefilledEmail(request.validatedData.query) })),
  )

  const SignUp = {
    email: FormText,
    password: FormText,
    firstName: Type.Optional(FormText),
    lastName: Type.Optional(FormText),
  }

  app.post('', pageForm(SignUp), async (request, reply) => {
    const { email, password, firstName, lastName } = request.validatedData.body
    const body = {
      email,
      password,
      ...(firstName && { firstName }),
      ...(lastName && { lastName }),
      ...returnToOf(request),
    }
    const response = await app.callApi(request, { method: 'POST', path: '/account/sign-up', body })
    reply.relay(response)
    const { status, errors } = response
    if (status === 201) return reply.redirectSignedIn()
    return reply.sendPage(
      status < 400 ? context => signUpSentPage(context, email) : page({ email, firstName, lastName, errors }),
    )
  })
}

export default signUp
