/** The types of what the benchmarks use of boot.mjs, to start the program with the same options. */
export declare const nodeFlags: readonly string[]
export declare const nodeEnvironment: Readonly<Record<string, string>>
