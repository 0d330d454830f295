import { dayMs } from '../../runtime/durations.ts'
import type { Draw } from './draw.ts'
import type { Drawn } from './question.ts'
import { differentFrom, otherThan } from './wrong-answers.ts'

const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
/** Offsets from UTC in minutes. The question states them, so no knowledge of time zones is needed. */
const offsets = [-570, -480, -300, -210, 0, 60, 120, 210, 330, 345, 540, 630, 765]

/** Days, working days, and clocks of places with given offsets. */
export function drawCalendar(draw: Draw): Drawn {
  return draw.one([drawWeekday, drawWorkingDays, drawOffset, drawSpan])(draw)
}

function drawWeekday(draw: Draw): Drawn {
  const from = randomDay(draw)
  const days = draw.whole(40, 400)
  const start = weekdayOf(from)
  const at = weekdays.indexOf(start)
  const right = weekdays[(at + days) % 7]!
  const near = (step: number): string => weekdays[(at + days + step) % 7]!
  return {
    body: `Today is a ${start}. Which day of the week is it exactly ${days} days from today?`,
    form: '<a day of the week in English>',
    expected: { kind: 'words', value: right },
    wrong: otherThan(right, [near(6), near(1)], near),
  }
}

function drawWorkingDays(draw: Draw): Drawn {
  const first = randomDay(draw)
  const last = first + draw.whole(12, 45) * dayMs
  const holiday = first + draw.whole(1, 10) * dayMs
  const all = Array.from({ length: (last - first) / dayMs + 1 }, (_, index) => first + index * dayMs)
  const isWorking = (day: number): boolean => !['Saturday', 'Sunday'].includes(weekdayOf(day))
  const working = all.filter(isWorking).length
  const right = working - (isWorking(holiday) ? 1 : 0)
  const body = `A shop is open from Monday to Friday and closed on ${writeDay(holiday)}, a ${weekdayOf(holiday)}, for stocktaking. On how many days is it open from ${writeDay(first)}, a ${weekdayOf(first)}, to ${writeDay(last)}, both days included?`
  return {
    body,
    form: '<a whole number>',
    expected: { kind: 'number', value: right, unit: 'days' },
    wrong: differentFrom(right, [right - 1, right + 1, working, all.length, right + 2]),
  }
}

function drawOffset(draw: Draw): Drawn {
  const [here, there] = draw.some(offsets, 2) as [number, number]
  const start = draw.whole(0, 95) * 15
  const flight = draw.whole(15, 220) * 5
  const right = writeClock(start - here + there + flight)
  const body = `In Harbourton clocks show UTC${writeOffset(here)}, in Millbridge UTC${writeOffset(there)}. A ferry leaves Harbourton when its clocks show ${writeClock(start)} and arrives in Millbridge ${Math.floor(flight / 60)} hours and ${flight % 60} minutes later. What do the clocks in Millbridge show then?`
  const guesses = [
    writeClock(start + here - there + flight),
    writeClock(start + flight),
    writeClock(start - here + there),
  ]
  return {
    body,
    form: '<hh:mm, 24 hours>',
    expected: { kind: 'time', value: right },
    wrong: otherThan(right, guesses, (step) => writeClock(start - here + there + flight + 60 * step)),
  }
}

function drawSpan(draw: Draw): Drawn {
  const first = randomDay(draw)
  const days = draw.whole(25, 380)
  const last = first + days * dayMs
  const body = `How many days after ${writeDay(first)} is ${writeDay(last)}? (The day after a date is 1 day after it.)`
  return {
    body,
    form: '<a whole number>',
    expected: { kind: 'number', value: days, unit: 'days' },
    wrong: differentFrom(days, [days + 1, days - 1, days + 2, days - 30]),
  }
}

function randomDay(draw: Draw): number {
  return Date.UTC(draw.whole(1996, 2035), 0, 1) + draw.whole(0, 364) * dayMs
}

function weekdayOf(dayStartMs: number): string {
  return weekdays[new Date(dayStartMs).getUTCDay()]!
}

function writeDay(dayStartMs: number): string {
  return new Date(dayStartMs).toISOString().slice(0, 10)
}

function writeClock(minutes: number): string {
  const inDay = ((minutes % 1440) + 1440) % 1440
  return `${String(Math.floor(inDay / 60)).padStart(2, '0')}:${String(inDay % 60).padStart(2, '0')}`
}

function writeOffset(minutes: number): string {
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${String(Math.floor(size / 60)).padStart(2, '0')}:${String(size % 60).padStart(2, '0')}`
}
