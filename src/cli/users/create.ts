/**
 * `comity users create`: an account, with a password from stdin or one that is made and shown this once. The account and its password
 * are two requests: where the second fails, the account stands without one, and `set-password` tries again.
 */
import type { User } from '../../auth/tables.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { openServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { tellAccount } from './account.ts';
import { madePassword, readPassword } from './password-input.ts';

export type CreateArguments = ServerArguments & {
  readonly name?: string;
  readonly role?: readonly string[];
  readonly scope?: readonly string[];
  readonly tenant?: string;
  readonly passwordStdin?: boolean;
  /** False for `--no-password`. */
  readonly password?: boolean;
};

export async function createUser(
  terminal: Terminal,
  email: string,
  options: CreateArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const given = options.passwordStdin === true ? await readPassword(terminal) : undefined;
  const made = given === undefined && options.password !== false ? madePassword() : undefined;
  const account = (await server.ask('POST', '/users', { json: accountOf(email, options) })) as User;
  const password = given ?? made;
  if (password !== undefined) await setPassword(server, account, password);
  if (json) tellJson(terminal, account, made);
  else {
    tellAccount(terminal, account, false);
    if (made !== undefined) terminal.out(`password  ${made}`);
  }
  if (made !== undefined) terminal.err('comity: the password was made here and is shown this once');
  return exitCodes.done;
}

function accountOf(email: string, { name, role, scope, tenant }: CreateArguments): Record<string, unknown> {
  return {
    email,
    ...(name === undefined ? {} : { name }),
    ...(role === undefined ? {} : { roles: role }),
    ...(scope === undefined ? {} : { scopes: scope }),
    ...(tenant === undefined ? {} : { tenant }),
  };
}

async function setPassword(server: ServerClient, { id, email }: User, password: string): Promise<void> {
  try {
    await server.ask('POST', `/users/${id}/password`, { json: { password } });
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const message = `${email} was made, but has no password yet: ${error.message}`;
    throw new CommandFailure(message, { cause: error });
  }
}

function tellJson(terminal: Terminal, account: User, made: string | undefined): void {
  const shown = made === undefined ? account : { ...account, password: made };
  terminal.out(JSON.stringify(shown, undefined, 2));
}
