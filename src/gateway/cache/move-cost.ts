/** What a second of waiting costs the person or agent that waits, US dollars. */
const usdPerSecond = 0.02
/** Prices where no backend has one, US dollars per million tokens: only their proportions matter. */
const assumedPrice: PlacePrice = { input: 3, output: 15 }
/** What reading from a cache costs where only the price of input is known, as a share of it. */
const assumedReadShare = 0.1
/** Tokens that a turn adds to the prompt, and tokens of its answer. */
const addedTokens = 1_000
const answerTokens = 500
/** How long a failed attempt takes, seconds. */
const failureSeconds = 5
/** More turns are not foreseen. */
const mostTurns = 20
const million = 1_000_000

/** US dollars per million tokens. */
export interface PlacePrice {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

/** One way to answer a turn. */
export interface Place {
  readonly price: PlacePrice | undefined
  /** What writing to the cache costs where its price is unknown, as a multiple of the input price. */
  readonly writeFactor: number
  /** Tokens of the prompt that its cache holds. */
  readonly warmTokens: number
  /** Expected seconds until the first content, including a wait before the request is sent. */
  readonly seconds: number
  /** The probability that it fails, from 0 to 1. */
  readonly failureRate: number
}

export interface Turn {
  readonly promptTokens: number
  /** Turns of the conversation so far: about as many follow. */
  readonly turns: number
  /** Whether prices decide between backends, or only what is paid for filling a cache again. */
  readonly comparesPrices: boolean
}

/** What a move costs and gains, US dollars: staying is cheaper if the first two are more than the others together. */
export interface MoveCost {
  readonly moves: boolean
  /** For computing again what the other cache holds. */
  readonly refillUsd: number
  /** The difference in price of the expected further turns. */
  readonly laterUsd: number
  /** For the time that staying takes longer. */
  readonly waitUsd: number
  /** For failures that are more likely here than there. */
  readonly failureUsd: number
}

/**
 * Whether to leave a backend that holds the cache: if the cost of filling another cache, and of all further turns there,
 * is lower than that of waiting and of failures here (contract 45.4):
 * P·(w_B·in_B − r_A·in_A) + m·(turn_B − turn_A) < V·wait + p_fail·redo.
 */
export function moveCost(turn: Turn, stay: Place, move: Place): MoveCost {
  const stayPrice = stay.price ?? move.price ?? assumedPrice
  const movePrice = (turn.comparesPrices ? move.price : undefined) ?? stayPrice
  const refillUsd = inputUsd(turn, move, movePrice) - inputUsd(turn, stay, stayPrice)
  const turns = Math.min(mostTurns, turn.turns)
  const laterUsd = turns * (laterTurnUsd(turn, move, movePrice) - laterTurnUsd(turn, stay, stayPrice))
  const waitUsd = usdPerSecond * (stay.seconds - move.seconds)
  const redoUsd = inputUsd(turn, { ...move, warmTokens: 0 }, movePrice) + usdPerSecond * failureSeconds
  const failureUsd = (stay.failureRate - move.failureRate) * redoUsd
  return { moves: refillUsd + laterUsd < waitUsd + failureUsd, refillUsd, laterUsd, waitUsd, failureUsd }
}

/** The longest wait at a warm backend that is cheaper than moving, seconds (contract 45.6). */
export function affordableWaitSeconds(turn: Turn, stay: Place, move: Place): number {
  const { refillUsd, laterUsd } = moveCost(turn, stay, move)
  return Math.max(0, refillUsd + laterUsd) / usdPerSecond
}

function inputUsd({ promptTokens }: Turn, { warmTokens, writeFactor }: Place, price: PlacePrice): number {
  const warm = Math.min(warmTokens, promptTokens)
  return (warm * readPrice(price) + (promptTokens - warm) * writePrice(price, writeFactor)) / million
}

function laterTurnUsd({ promptTokens }: Turn, { writeFactor }: Place, price: PlacePrice): number {
  const input = promptTokens * readPrice(price) + addedTokens * writePrice(price, writeFactor)
  return (input + answerTokens * price.output) / million
}

function readPrice({ input, cacheRead = input * assumedReadShare }: PlacePrice): number {
  return cacheRead
}

function writePrice({ input, cacheWrite }: PlacePrice, writeFactor: number): number {
  return cacheWrite ?? input * writeFactor
}
