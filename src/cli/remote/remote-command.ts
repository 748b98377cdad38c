/**
 * A command that calls a running server, as a declaration: name, arguments, options, request, and how the answer is printed.
 * `declare-remote.ts` makes the help of it, and `run-remote.ts` runs it.
 */
import type { DeclaredCommand, Given } from '../declare-command.ts';
import type { KeyUse, ServerClient } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';

/** `comity users` with its subcommands. */
export type Noun = Use & {
  readonly name: string;
  readonly description: string;
  readonly commands: readonly RemoteCommand[];
};

/** The members that the commands of a noun share. */
export type Use = {
  readonly key: KeyUse;
  /** The word before its name where it is missing: `there is no account ada@shop.example`. */
  readonly thing?: string;
};

/** Its first argument is what the captures of the paths are filled with. */
export type RemoteCommand = DeclaredCommand & {
  /** Method and path below the base: `PATCH /endpoints/{id}`. Absent: what was found is the answer. */
  readonly request?: `${string} /${string}`;
  /** The answer is a list: read to `--limit` from the newest item, or whole. */
  readonly lists?: 'newest' | 'all';
  /** Members of the content beside those that options set. */
  readonly content?: object | ((call: Call<never>) => object | Promise<object>);
  /** Reads what the first argument names before anything else; its members fill captures too. */
  readonly finds?: `GET /${string}` | ((call: Call) => Promise<object>);
  /** A question that a person at a terminal answers first; adds `--yes`. */
  readonly confirms?: (found: never) => string;
  /** The end of `nothing was ...` after another answer than yes. */
  readonly done?: string;
  /** The request is sent for each argument, and this is printed after its name. */
  readonly each?: string;
  /** The items of a list, for people. */
  readonly table?: (items: readonly never[]) => string;
  readonly none?: string;
  /** The answer for people, or all that is printed. */
  readonly print?: (
    answer: never,
    call: Call<never, never>,
  ) => string | Partial<Printed> | Promise<string | Partial<Printed>>;
  /** In place of the request, where that is several. @returns what is printed, or the exit code of what has printed it */
  readonly run?: (call: Call<never, never>) => Promise<Printed | number>;
};

export type Call<O = Given['options'], F = unknown> = Pick<Given, 'names' | 'members'> & {
  readonly terminal: Terminal;
  /** Opened by the first call, so that a mistake in the arguments comes before a missing key. */
  readonly server: () => ServerClient;
  readonly options: O;
  readonly found: F;
  readonly json: boolean;
  /** True without a terminal, with `--yes` and with `--json`. */
  readonly isConfirmed: (question: string) => Promise<boolean>;
  /**
   * Makes a change for each argument, and prints `done` after its name, or with `--json` what the server returned for all. A refusal does not
   * stop the others; the command fails at the end.
   * @returns the exit code
   */
  readonly changeEach: (done: string, change: (name: string) => Promise<unknown>) => Promise<number>;
};

export type Printed = {
  /** Printed by `--json`. */
  readonly json: unknown;
  /** The JSON is one line. */
  readonly isLine?: true;
  readonly text?: string;
  /** Lines on stderr below the text. */
  readonly notes?: readonly string[];
  /** The command fails after it has printed, with these words if there are any. */
  readonly failure?: string;
};
