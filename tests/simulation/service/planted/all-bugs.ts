import { accessBugs } from './access-bugs.ts'
import { answerBugs } from './answer-bugs.ts'
import { generationBugs } from './generation-bugs.ts'
import { ledgerBugs } from './ledger-bugs.ts'
import type { PlantedBug } from './planted-bug.ts'

/** Every planted bug, from failures of other gateways and of this project. */
export const plantedBugs: readonly PlantedBug[] = [...ledgerBugs, ...accessBugs, ...answerBugs, ...generationBugs]
