/**
 * A command that calls a running server: its declaration, and the runner, which reads what it names, asks, sends its request, and prints the
 * answer. program.ts makes the help of it.
 */
import type { DeclaredCommand, Given } from '../declare-command.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { type KeyUse, openServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { isConfirmed, type Terminal } from '../terminal.ts';

/** More than a configuration can declare, and than one message or delivery has attempts. */
const wholeListMax = 1000;

/** @returns the exit code */
export async function runRemote(
  terminal: Terminal,
  command: RemoteCommand,
  use: Use,
  given: Given,
): Promise<number> {
  const blank = callOf(terminal, use, given);
  const content = await contentOf(command, blank);
  const call = { ...blank, found: await foundBy(command, use, blank) };
  if (command.confirms !== undefined && !(await call.isConfirmed(command.confirms(call.found as never)))) {
    terminal.err(`comity: nothing was ${command.done}`);
    return exitCodes.failed;
  }
  if (command.run !== undefined) {
    const printed = await command.run(call as never);
    return typeof printed === 'number' ? printed : tell(terminal, printed, call.json);
  }
  if (command.lists !== undefined) return tellList(command, call);
  const server = call.server();
  const ask = (name: string): Promise<unknown> => {
    const [method = '', path = ''] = command.request?.split(' ') ?? [];
    return server.ask(method, filled(path, name, call.found), {
      json: content,
      subject: subjectOf(path, use, name),
    });
  };
  if (command.each !== undefined) return call.changeEach(command.each, ask);
  const answer = command.request === undefined ? call.found : await ask(call.names[0] ?? '');
  const printed = (await command.print?.(answer as never, call as never)) ?? {};
  return tell(
    terminal,
    { json: answer, ...(typeof printed === 'string' ? { text: printed } : printed) },
    call.json,
  );
}

function callOf(terminal: Terminal, { key }: Use, given: Given): Call {
  const options = given.options as ServerArguments & { readonly json?: boolean; readonly yes?: boolean };
  const { json = false, yes = false } = options;
  let opened: ServerClient | undefined;
  return {
    ...given,
    terminal,
    server: () => {
      opened ??= openServer(terminal, options, key);
      return opened;
    },
    found: undefined,
    json,
    isConfirmed: async (question) => yes || json || isConfirmed(terminal, question),
    changeEach: (done, change) => changeEach(terminal, { ...given, json }, done, change),
  };
}

/** Undefined: the request has none. */
async function contentOf(command: RemoteCommand, call: Call): Promise<object | undefined> {
  const { content, options = [], request = 'GET /' } = command;
  const more = typeof content === 'function' ? await content(call as never) : content;
  const hasMembers = !request.startsWith('GET ') && options.some(([, , rule]) => rule?.member !== undefined);
  return more === undefined && !hasMembers ? undefined : { ...call.members, ...more };
}

async function foundBy({ finds }: RemoteCommand, use: Use, call: Call): Promise<unknown> {
  if (typeof finds !== 'string') return finds?.(call);
  const [name = ''] = call.names;
  const path = finds.slice('GET '.length);
  return call.server().ask('GET', filled(path, name, undefined), { subject: subjectOf(path, use, name) });
}

const capture = /\{(\w+)\}/g;

function filled(path: string, name: string, found: unknown): string {
  const members = (found ?? {}) as Readonly<Record<string, unknown>>;
  return path.replace(capture, (_, of: string) => encodeURIComponent(String(members[of] ?? name)));
}

/** The subject of the message for a 404; undefined for a path that names no resource by id. */
function subjectOf(path: string, { thing }: Use, name: string): string | undefined {
  return path.includes('{') ? `${thing} ${name}` : undefined;
}

/** As a table or a JSON array, with a note on stderr if there are more items. */
async function tellList(command: RemoteCommand, call: Call): Promise<number> {
  const { request = '', lists, table, none } = command;
  const { terminal, members, names, found, json } = call;
  const query = new URLSearchParams(lists === 'newest' ? { sort: '-id' } : {});
  for (const [name, value] of Object.entries(members))
    if (value !== undefined) query.set(name, String(value));
  const path = filled(request.slice('GET '.length), names[0] ?? '', found);
  const { limit = wholeListMax } = call.options as { readonly limit?: number };
  const { items, more } = await call.server().list(query.size === 0 ? path : `${path}?${query}`, limit);
  const text = items.length === 0 && none !== undefined ? none : table?.(items as never);
  terminal.out(json ? JSON.stringify(items, undefined, 2) : (text ?? ''));
  if (more) terminal.err(`comity: there are more than these ${items.length}; --limit shows more of them`);
  return exitCodes.done;
}

function tell(terminal: Terminal, printed: Printed, json: boolean): number {
  const { text, notes = [], failure } = printed;
  if (json) terminal.out(JSON.stringify(printed.json, undefined, printed.isLine ? 0 : 2));
  else if (text !== undefined) terminal.out(text);
  for (const note of json ? [] : notes) terminal.err(`comity: ${note}`);
  if (failure) throw new CommandFailure(failure);
  return failure === undefined ? exitCodes.done : exitCodes.failed;
}

async function changeEach(
  terminal: Terminal,
  { names, json }: Pick<Call, 'names' | 'json'>,
  done: string,
  change: (name: string) => Promise<unknown>,
): Promise<number> {
  const changed: unknown[] = [];
  const failures: string[] = [];
  for (const name of names) {
    try {
      changed.push(await change(name));
      if (!json) terminal.out(`${name} ${done}`);
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      failures.push(names.length === 1 ? error.message : `${name}: ${error.message}`);
    }
  }
  if (json) terminal.out(JSON.stringify(changed, undefined, 2));
  for (const failure of failures) terminal.err(`comity: ${failure}`);
  return failures.length > 0 ? exitCodes.failed : exitCodes.done;
}

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
