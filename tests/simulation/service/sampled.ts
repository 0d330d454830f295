/** `npm test` runs this many schedules in each of two test files, so that two workers share them. */
export const sampledInEachFile = 5_000
