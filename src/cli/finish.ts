/** Takes the exit code of the subcommand that was called. */
export type Finish = (exitCode: number) => void;
