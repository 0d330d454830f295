/** What a promise is rejected with. @throws where it is not */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('this was expected to fail')
    },
    (error: unknown) => error,
  )
}
