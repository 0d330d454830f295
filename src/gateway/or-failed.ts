/** What a port returns, at once or later; `failed` replaces its errors. */
export function orFailed<Value>(
  ask: () => Value | Promise<Value>,
  failed: (cause: unknown) => never,
): Value | Promise<Value> {
  try {
    const found = ask()
    return found instanceof Promise ? found.catch(failed) : found
  } catch (cause) {
    return failed(cause)
  }
}
