import type { Expected } from './question.ts'

/** A handwritten question that a common misconception answers wrongly. `wrong` starts with the misconception. */
interface Trap {
  readonly ask: string
  readonly form: string
  readonly expected: Expected
  readonly wrong: readonly [string, string, string, ...string[]]
}

const whole = '<a whole number>'

function number(value: number, unit?: string): Expected {
  return unit === undefined ? { kind: 'number', value } : { kind: 'number', value, unit }
}

function words(value: string, ...others: string[]): Expected {
  return { kind: 'words', value, others }
}

/** Our own questions. Each answer follows from the question or is common reference knowledge. */
export const traps: readonly Trap[] = [
  {
    ask: 'A jar with its lid weighs 110 grams. The jar weighs 100 grams more than the lid. How many grams does the lid weigh?',
    form: whole,
    expected: number(5, 'grams'),
    wrong: ['10', '55', '100'],
  },
  {
    ask: 'Duckweed doubles the area it covers every day and covers a whole pond on day 30. On which day did it cover half of the pond?',
    form: '<the number of the day>',
    expected: number(29),
    wrong: ['15', '28', '30'],
  },
  {
    ask: 'Six looms weave six blankets in six hours. How many hours do thirty such looms need for thirty blankets?',
    form: whole,
    expected: number(6, 'hours'),
    wrong: ['30', '5', '1'],
  },
  {
    ask: 'In a race you overtake the runner who is third. Which place are you in now? Give its number.',
    form: whole,
    expected: number(3),
    wrong: ['2', '4', '1'],
  },
  {
    ask: 'How many months of a year have at least 28 days?',
    form: whole,
    expected: number(12, 'months'),
    wrong: ['1', '11', '7'],
  },
  {
    ask: 'A courier rides to a village at 60 km/h and back on the same road at 30 km/h. What is the average speed over the whole way, in km/h?',
    form: '<a number>',
    expected: number(40, 'km/h'),
    wrong: ['45', '50', '42'],
  },
  {
    ask: 'A coat costs 200 crowns. Its price rises by 30 percent and later falls by 30 percent. What does it cost then, in crowns?',
    form: '<a number>',
    expected: number(182, 'crowns'),
    wrong: ['200', '218', '140'],
  },
  {
    ask: 'A snail is at the bottom of a well that is 12 metres deep. Each day it climbs 4 metres, each night it slips back 2. On which day does it get out?',
    form: '<the number of the day>',
    expected: number(5),
    wrong: ['6', '4', '12'],
  },
  {
    ask: 'A straight fence is 60 metres long and has a post every 5 metres, at both ends too. How many posts are there?',
    form: whole,
    expected: number(13, 'posts'),
    wrong: ['12', '11', '14'],
  },
  {
    ask: 'A drawer holds 14 grey and 14 blue socks. In the dark, how many have to be taken out so that two of one colour are among them for sure?',
    form: whole,
    expected: number(3, 'socks'),
    wrong: ['15', '2', '14'],
  },
  {
    ask: 'How many cuts does it take to saw a beam into nine pieces, one piece at a time and without stacking?',
    form: whole,
    expected: number(8, 'cuts'),
    wrong: ['9', '10', '4'],
  },
  {
    ask: 'How often is the digit 7 written when all whole numbers from 1 to 100 are written down?',
    form: whole,
    expected: number(20),
    wrong: ['10', '19', '11'],
  },
  {
    ask: 'A tower clock takes 6 seconds to strike four, from the first stroke to the last. How many seconds does it take to strike eight?',
    form: whole,
    expected: number(14, 'seconds'),
    wrong: ['12', '16', '10'],
  },
  {
    ask: 'A tile weighs one kilogram plus half of what it weighs. How many kilograms does it weigh?',
    form: '<a number>',
    expected: number(2, 'kilograms'),
    wrong: ['1.5', '1', '3'],
  },
  {
    ask: 'Greta has five brothers and two sisters. How many sisters does each of her brothers have?',
    form: whole,
    expected: number(3, 'sisters'),
    wrong: ['2', '1', '5'],
  },
  {
    ask: 'Four shirts on a line in the sun are dry after two hours. How many hours do twelve shirts need, hung up side by side at the same time?',
    form: whole,
    expected: number(2, 'hours'),
    wrong: ['6', '24', '4'],
  },
  {
    ask: 'What is the smaller angle between the hands of a clock at half past three, in degrees?',
    form: '<a number>',
    expected: number(75, 'degrees'),
    wrong: ['90', '105', '82.5'],
  },
  {
    ask: 'Water is 99 percent of the weight of 200 kilograms of cucumbers. They dry until water is 98 percent. What do they weigh then, in kilograms?',
    form: '<a number>',
    expected: number(100, 'kilograms'),
    wrong: ['198', '196', '199'],
  },
  {
    ask: 'Twelve people meet, and each shakes hands once with each other one. How many handshakes is that?',
    form: whole,
    expected: number(66, 'handshakes'),
    wrong: ['144', '132', '72'],
  },
  {
    ask: 'Divide 40 by one half and add 15. What is the result?',
    form: whole,
    expected: number(95),
    wrong: ['35', '55', '27.5'],
  },
  {
    ask: 'A fair coin has just fallen heads seven times in a row. What is the probability of tails at the next toss, as a fraction?',
    form: '<a fraction>',
    expected: number(0.5),
    wrong: ['7/8', '1/8', '1/256'],
  },
  {
    ask: 'How many people must be in a room so that two of them certainly have their birthday in the same month?',
    form: whole,
    expected: number(13, 'people'),
    wrong: ['12', '24', '7'],
  },
  {
    ask: 'Every tenth person of a town has a certain gene. A test finds it in 80 percent of those who have it, and wrongly in 20 percent of those who do not. Someone tests positive. How probable is it that they have the gene? Give percent, rounded to a whole number.',
    form: '<a whole number>',
    expected: number(31, '%'),
    wrong: ['80', '64', '20'],
  },
  {
    ask: 'A family has two children, and the younger one is a boy. Boys and girls are equally likely. What is the probability that both are boys, as a fraction?',
    form: '<a fraction>',
    expected: number(0.5),
    wrong: ['1/3', '1/4', '2/3'],
  },
  {
    ask: 'A prize is behind one of three doors. You choose one. A host who does not know where it is opens one of the two others at random, and it happens to be empty. What is your probability of winning if you change to the last door, as a fraction?',
    form: '<a fraction>',
    expected: number(0.5),
    wrong: ['2/3', '1/3', '3/4'],
  },
  {
    ask: 'How many days did February of the year 1900 have in the Gregorian calendar?',
    form: whole,
    expected: number(28, 'days'),
    wrong: ['29', '30', '27'],
  },
  {
    ask: 'Which of these two decimal numbers is larger: 7.9 or 7.11?',
    form: '<the number>',
    expected: number(7.9),
    wrong: ['7.11', '0.21', '0.79'],
  },
  {
    ask: 'A rope lies tightly around a ball that is 100 metres around. It is made 1 metre longer and lifted evenly. How high above the ball is it, in whole centimetres, rounded?',
    form: whole,
    expected: number(16, 'cm'),
    wrong: ['1', '100', '0'],
  },
  {
    ask: 'How often does the letter "e" occur in the word "nevertheless"?',
    form: whole,
    expected: number(4),
    wrong: ['3', '5', '2'],
  },
  {
    ask: 'In Python 3, what does the expression -9 // 4 give?',
    form: '<a number>',
    expected: number(-3),
    wrong: ['-2', '-2.25', '2'],
  },
  {
    ask: 'In C, what does the expression -9 / 4 give for two values of type int?',
    form: '<a number>',
    expected: number(-2),
    wrong: ['-3', '-2.25', '2'],
  },
  {
    ask: 'In JavaScript, what is the string that typeof null gives?',
    form: '<the string>',
    expected: words('object'),
    wrong: ['null', 'undefined', 'none'],
  },
  {
    ask: 'In JavaScript, which number comes first after [9, 80, 700].sort() without an argument?',
    form: '<a number>',
    expected: number(700),
    wrong: ['9', '80', '0'],
  },
  {
    ask: 'With IEEE 754 doubles, is 0.1 + 0.2 equal to 0.3? Answer yes or no.',
    form: '<yes or no>',
    expected: words('no'),
    wrong: ['yes', 'only if rounded', 'sometimes'],
  },
  {
    ask: 'In standard SQL, what truth value does the comparison NULL = NULL have: true, false or unknown?',
    form: '<one word>',
    expected: words('unknown', 'null'),
    wrong: ['true', 'false', 'error'],
  },
  {
    ask: 'How many bytes does a gibibyte (GiB) have?',
    form: whole,
    expected: number(1_073_741_824, 'bytes'),
    wrong: ['1000000000', '1024000000', '1048576'],
  },
  {
    ask: 'A file on a Unix system has the mode 640. Can a user who neither owns it nor is in its group read it, root left aside? Answer yes or no.',
    form: '<yes or no>',
    expected: words('no'),
    wrong: ['yes', 'only in a shell', 'sometimes'],
  },
  {
    ask: 'Which planet is, averaged over time, closest to the Earth?',
    form: '<one name>',
    expected: words('Mercury'),
    wrong: ['Venus', 'Mars', 'Jupiter'],
  },
  {
    ask: 'In which month is the Earth closest to the Sun?',
    form: '<a month in English>',
    expected: words('January', 'early January'),
    wrong: ['July', 'June', 'December'],
  },
  {
    ask: 'What is the capital of Turkey?',
    form: '<one name>',
    expected: words('Ankara'),
    wrong: ['Istanbul', 'Izmir', 'Antalya'],
  },
  {
    ask: 'Does water boil at a higher or a lower temperature on a high mountain than at the sea?',
    form: '<higher or lower>',
    expected: words('lower', 'at a lower temperature', 'lower temperature'),
    wrong: ['higher', 'the same', 'neither'],
  },
  {
    ask: 'Two solid balls of the same size, one of lead and one of wood, are dropped together in a vacuum. Which reaches the ground first: lead, wood, or both at once?',
    form: '<lead, wood or both>',
    expected: words('both', 'both at once', 'both at the same time'),
    wrong: ['lead', 'wood', 'the heavier one'],
  },
  {
    ask: 'An ice cube floats in a glass of plain water that is full to the brim. The ice melts. Does the level rise, fall or stay the same?',
    form: '<rise, fall or same>',
    expected: words('same', 'stay the same', 'stays the same'),
    wrong: ['rise', 'fall', 'it overflows'],
  },
  {
    ask: 'How many different whole numbers from 10 to 99 have two equal digits?',
    form: whole,
    expected: number(9),
    wrong: ['10', '8', '11'],
  },
]
