/** `comity users` and its subcommands. */

import { randomBytes } from 'node:crypto';
import { fieldsOfUser, ownAccountMembers, type User } from '../../accounts/account-tables.ts';
import { normalizeEmail } from '../../mail/email.ts';
import { isConfirmed, stdinLine } from '../confirm.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { openServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { printable, tableText, tellList } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export async function showUser(
  terminal: Terminal,
  name: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  tellAccount(terminal, await findAccount(openServer(terminal, options), name), json);
  return exitCodes.done;
}

/** @param name id or e-mail address */
export async function findAccount(server: ServerClient, name: string): Promise<User> {
  const subject = `account ${name}`;
  if (!name.includes('@')) {
    return (await server.ask('GET', `/users/${encodeURIComponent(name)}`, { subject })) as User;
  }
  const email = normalizeEmail(name);
  const found =
    email === undefined
      ? undefined
      : (await server.list<User>(`/users?email=${encodeURIComponent(email)}`, 1)).items[0];
  if (found === undefined) throw new CommandFailure(`there is no ${subject}`);
  return found;
}

export async function changeAccount(
  server: ServerClient,
  name: string,
  change: Readonly<Record<string, unknown>>,
): Promise<User> {
  const { id } = await findAccount(server, name);
  const subject = `account ${name}`;
  return (await server.ask('PATCH', `/users/${id}`, { json: change, subject })) as User;
}

export function tellAccount(terminal: Terminal, account: User, json: boolean): void {
  terminal.out(json ? JSON.stringify(account, undefined, 2) : accountText(account));
}

function accountText(account: User): string {
  const lines: (readonly [label: string, value: string | undefined])[] = [
    ['id', account.id],
    ['email', `${account.email}${account.emailVerified ? '' : ' (not verified)'}`],
    ['name', account.name],
    ['roles', account.roles.join(', ') || 'none'],
    ['scopes', account.scopes.join(', ') || 'none'],
    ['tenant', account.tenant],
    ['disabled', account.disabled ? 'yes' : 'no'],
    ['created', account.createdAt],
    ['changed', account.updatedAt],
  ];
  const fields = Object.entries(fieldsOfUser(account)).map(
    ([label, value]) => [label, typeof value === 'string' ? value : JSON.stringify(value)] as const,
  );
  return [...lines, ...fields]
    .flatMap(([label, value]) => (value === undefined ? [] : [`${label.padEnd(8)}  ${printable(value)}`]))
    .join('\n');
}

export function accountsText(accounts: readonly User[]): string {
  const rows = accounts.map(({ id, email, name = '', roles, disabled, createdAt }) => [
    ...[id, email, name, roles.join(', '), disabled ? 'disabled' : '', createdAt.slice(0, 10)],
  ]);
  return tableText([['ID', 'EMAIL', 'NAME', 'ROLES', 'STATE', 'CREATED'], ...rows]);
}

export type ListArguments = ServerArguments & { readonly limit: number; readonly search?: string };

/** `comity users list`: the newest first. Ids grow with time; listing by id costs the same for any number. */
export async function listUsers(terminal: Terminal, options: ListArguments, json: boolean): Promise<number> {
  const server = openServer(terminal, options);
  const words = options.search === undefined ? '' : `&q=${encodeURIComponent(options.search)}`;
  const listed = await server.list<User>(`/users?sort=-id${words}`, options.limit);
  tellList(terminal, listed, json, { text: accountsText, none: 'No accounts.' });
  return exitCodes.done;
}

export type CreateArguments = ServerArguments & {
  readonly name?: string;
  readonly role?: readonly string[];
  readonly scope?: readonly string[];
  readonly tenant?: string;
  /** `name=value` or `name:=JSON`. */
  readonly field?: readonly string[];
  readonly passwordStdin?: boolean;
  /** False for `--no-password`. */
  readonly password?: boolean;
};

/**
 * `comity users create`: creates an account, with a password from stdin or a generated one that is shown once. Account
 * and password are two requests: if the second fails, the account has no password, and `set-password` tries again.
 */
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
  if (made !== undefined) terminal.err('comity: the password was generated here and is shown only once');
  return exitCodes.done;
}

function accountOf(
  email: string,
  { name, role, scope, tenant, field = [] }: CreateArguments,
): Record<string, unknown> {
  return {
    ...readFields(field),
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
    const message = `${email} was created, but has no password yet: ${error.message}`;
    throw new CommandFailure(message, { cause: error });
  }
}

function tellJson(terminal: Terminal, account: User, made: string | undefined): void {
  const shown = made === undefined ? account : { ...account, password: made };
  terminal.out(JSON.stringify(shown, undefined, 2));
}

/** Generates a password of 120 bits. */
export function madePassword(): string {
  return randomBytes(15).toString('base64url');
}

export function readPassword(terminal: Terminal): Promise<string> {
  return stdinLine(
    terminal.stdin,
    'password',
    '--password-stdin reads a pipe; without it a password is generated and shown',
  );
}

export type DeleteArguments = ServerArguments & { readonly yes?: boolean };

/** `comity users delete`: removes an account with its password, sessions and keys. Rows that it created stay. */
export async function deleteUser(
  terminal: Terminal,
  name: string,
  options: DeleteArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const { id, email } = await findAccount(server, name);
  const question = `Delete ${email} with its password, sessions and keys?`;
  if (options.yes !== true && !json && !(await isConfirmed(terminal, question))) {
    terminal.err('comity: nothing was deleted');
    return exitCodes.failed;
  }
  await server.ask('DELETE', `/users/${id}`, { subject: `account ${name}` });
  terminal.out(json ? JSON.stringify({ id, email, deleted: true }) : `${email} (${id}) was deleted.`);
  return exitCodes.done;
}

/**
 * `comity users disable` and `enable`: a disabled account has no valid credential, its keys included. Enabling restores
 * its password and its keys; sessions must be opened anew.
 */
export async function setUserDisabled(
  terminal: Terminal,
  name: string,
  disabled: boolean,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  tellAccount(terminal, await changeAccount(openServer(terminal, options), name, { disabled }), json);
  return exitCodes.done;
}

export type SetPasswordArguments = ServerArguments & { readonly passwordStdin?: boolean };

/** `comity users set-password`: sets a password, from stdin or generated and shown once, and ends all sessions. */
export async function setUserPassword(
  terminal: Terminal,
  name: string,
  options: SetPasswordArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const given = options.passwordStdin === true ? await readPassword(terminal) : undefined;
  const password = given ?? madePassword();
  const { id, email } = await findAccount(server, name);
  await server.ask('POST', `/users/${id}/password`, { json: { password }, subject: `account ${name}` });
  const made = given === undefined ? { password } : {};
  if (json) terminal.out(JSON.stringify({ id, email, ...made }));
  else if (given === undefined) terminal.out(password);
  const shown = given === undefined ? '; it was generated here and is shown only once' : '';
  terminal.err(`comity: ${email} has a new password and no sessions${shown}`);
  return exitCodes.done;
}

const assignment = /^([^:=]+)(:?=)(.*)$/s;

/** @throws CommandFailure for anything but `name=value` and `name:=JSON` */
function readFields(assignments: readonly string[]): Readonly<Record<string, unknown>> {
  const fields: [string, unknown][] = [];
  for (const text of assignments) {
    const [, name, sign, value = ''] = assignment.exec(text) ?? [];
    if (name === undefined) throw notAnAssignment(text);
    fields.push([name, sign === '=' ? value : readJson(text, value)]);
  }
  return Object.fromEntries(fields);
}

function readJson(text: string, value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw notAnAssignment(text);
  }
}

function notAnAssignment(text: string): CommandFailure {
  const message = `a field must be name=value, or name:=JSON such as level:=3, not ${JSON.stringify(text)}`;
  return new CommandFailure(message, { exitCode: exitCodes.usage });
}

/** `comity users set-fields`: changes fields that the application declares, and no member of Comity. */
export async function setUserFields(
  terminal: Terminal,
  name: string,
  assignments: readonly string[],
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const fields = readFields(assignments);
  const own = Object.keys(fields).find((field) => Object.hasOwn(ownAccountMembers, field));
  if (own !== undefined) {
    const message = `${own} is not a field of the application; see comity users --help`;
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  tellAccount(terminal, await changeAccount(openServer(terminal, options), name, fields), json);
  return exitCodes.done;
}

export type SetRolesArguments = ServerArguments & { readonly none?: boolean };

/** `comity users set-roles`: replaces the roles of an account. */
export async function setUserRoles(
  terminal: Terminal,
  name: string,
  roles: readonly string[],
  options: SetRolesArguments,
  json: boolean,
): Promise<number> {
  if ((roles.length === 0) !== (options.none === true)) {
    const message = 'name the roles of the account, or use --none';
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  tellAccount(
    terminal,
    await changeAccount(openServer(terminal, options), name, { roles: [...new Set(roles)] }),
    json,
  );
  return exitCodes.done;
}

/** `comity users reset-second-factor`: for an owner who lost the device and the recovery codes. */
export async function resetSecondFactor(
  terminal: Terminal,
  name: string,
  options: DeleteArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const { id, email } = await findAccount(server, name);
  const question = `Remove the second factor of ${email} and end its sessions?`;
  if (options.yes !== true && !json && !(await isConfirmed(terminal, question))) {
    terminal.err('comity: nothing was removed');
    return exitCodes.failed;
  }
  await server.ask('POST', `/users/${id}/reset-second-factor`, { subject: `account ${name}` });
  const text = `${email} (${id}) has no second factor and no sessions.`;
  terminal.out(json ? JSON.stringify({ id, email, secondFactor: false }) : text);
  return exitCodes.done;
}
