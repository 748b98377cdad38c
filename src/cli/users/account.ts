/** An account as the server shows it, how a person names it, and how it is shown to him. */
import { normalizeEmail } from '../../auth/email.ts';
import type { User } from '../../auth/tables.ts';
import { CommandFailure } from '../failure.ts';
import type { ServerClient } from '../server-client.ts';
import { printable, tableText } from '../table.ts';
import type { Terminal } from '../terminal.ts';

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

/** Changes an account and shows it. */
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

/** One line for each thing that there is to say. */
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
  return lines
    .flatMap(([label, value]) => (value === undefined ? [] : [`${label.padEnd(8)}  ${printable(value)}`]))
    .join('\n');
}

export function accountsText(accounts: readonly User[]): string {
  const rows = accounts.map(({ id, email, name = '', roles, disabled, createdAt }) => [
    ...[id, email, name, roles.join(', '), disabled ? 'disabled' : '', createdAt.slice(0, 10)],
  ]);
  return tableText([['ID', 'EMAIL', 'NAME', 'ROLES', 'STATE', 'CREATED'], ...rows]);
}
