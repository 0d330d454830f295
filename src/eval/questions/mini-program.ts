/** A number, or a variable's name. */
type Value = number | string

/** A program in the small language of the questions. */
export type Statement =
  | { readonly do: 'set'; readonly name: string; readonly to: Expression }
  | { readonly do: 'repeat'; readonly times: Value; readonly body: readonly Statement[] }
  | {
      readonly do: 'if'
      readonly test: Comparison
      readonly met: readonly Statement[]
      readonly unmet: readonly Statement[]
    }
  | { readonly do: 'print'; readonly name: string }

export interface Expression {
  readonly left: Value
  readonly operator: '+' | '-' | '*' | 'mod'
  readonly right: Value
}

interface Comparison {
  readonly left: Value
  readonly operator: '<' | '>' | '='
  readonly right: Value
}

/** The number of steps after which a program is aborted; no question's program comes close. */
const maxSteps = 10_000

/** Runs a program and returns its output, in order. @throws Error for an unset name, or if the program does not end */
export function runProgram(program: readonly Statement[]): number[] {
  const values = new Map<string, number>()
  const printed: number[] = []
  let steps = 0
  const read = (value: Value): number => {
    const found = typeof value === 'number' ? value : values.get(value)
    if (found === undefined) throw new Error('the program reads a name that was not set')
    return found
  }
  const run = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      steps += 1
      if (steps > maxSteps) throw new Error('the program does not end')
      if (statement.do === 'set') values.set(statement.name, compute(statement.to, read))
      else if (statement.do === 'print') printed.push(read(statement.name))
      else if (statement.do === 'if') run(holds(statement.test, read) ? statement.met : statement.unmet)
      else for (let left = read(statement.times); left > 0; left--) run(statement.body)
    }
  }
  run(program)
  return printed
}

/** A program as the question shows it, indented by two spaces. */
export function writeProgram(program: readonly Statement[], indent = ''): string {
  return program.map((statement) => indent + writeStatement(statement, indent)).join('\n')
}

function writeStatement(statement: Statement, indent: string): string {
  const inner = `${indent}  `
  switch (statement.do) {
    case 'set': {
      const { left, operator, right } = statement.to
      return `set ${statement.name} to ${left} ${operator} ${right}`
    }
    case 'print':
      return `print ${statement.name}`
    case 'repeat':
      return `repeat ${statement.times} times\n${writeProgram(statement.body, inner)}\n${indent}end`
    case 'if': {
      const { left, operator, right } = statement.test
      const otherwise = statement.unmet.length === 0 ? '' : `\n${indent}else\n${writeProgram(statement.unmet, inner)}`
      return `if ${left} ${operator} ${right}\n${writeProgram(statement.met, inner)}${otherwise}\n${indent}end`
    }
  }
}

function compute({ left, operator, right }: Expression, read: (value: Value) => number): number {
  const [a, b] = [read(left), read(right)]
  if (operator === '+') return a + b
  if (operator === '-') return a - b
  if (operator === '*') return a * b
  // Never negative, as the question says.
  return ((a % b) + b) % b
}

function holds({ left, operator, right }: Comparison, read: (value: Value) => number): boolean {
  const [a, b] = [read(left), read(right)]
  return operator === '<' ? a < b : operator === '>' ? a > b : a === b
}
