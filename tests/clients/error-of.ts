/** The reason with which a promise rejects. @throws if it does not reject */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('this was expected to fail')
    },
    (error: unknown) => error,
  )
}
