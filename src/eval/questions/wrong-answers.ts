const enough = 3

/** At least three different wrong numbers: the results of likely mistakes first, then close ones. */
export function differentFrom(right: number, guesses: readonly number[]): string[] {
  const wrong = new Set<number>()
  for (const guess of guesses) if (Number.isFinite(guess) && guess !== right) wrong.add(guess)
  for (let step = 1; wrong.size < enough; step++) wrong.add(Math.round((right + step) * 100) / 100)
  return [...wrong].slice(0, 6).map(String)
}

/** The same for texts. `near` creates more, one for each number from 1 on. */
export function otherThan(right: string, guesses: readonly string[], near: (step: number) => string): string[] {
  const isWrong = (text: string): boolean => text !== '' && text !== right
  const wrong = new Set(guesses.filter(isWrong))
  for (let step = 1; wrong.size < enough; step++) if (isWrong(near(step))) wrong.add(near(step))
  return [...wrong].slice(0, 6)
}
