/** An API key as the server shows it, for people and for programs. The text of a new one is alone on stdout, for `KEY=$(...)`. */
import type { Key } from '../../auth/keys/key-rows.ts';
import { printable, tableText } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export type ShownKey = Key & { readonly key: string };

export function tellNewKey(terminal: Terminal, shown: ShownKey, json: boolean): void {
  if (json) {
    terminal.out(JSON.stringify(shown, undefined, 2));
    return;
  }
  terminal.out(shown.key);
  const { id, name, scopes, expiresAt } = shown;
  const end = expiresAt === undefined ? 'no end' : `good until ${expiresAt}`;
  terminal.err(`comity: ${id} (${printable(name)}): ${scopes.join(', ') || 'no scopes'}, ${end}.`);
  terminal.err('comity: the key is shown this once; keep it now');
}

export function keysText(keys: readonly Key[]): string {
  const rows = keys.map(({ id, name, prefix, scopes, expiresAt, lastUsedAt, createdAt }) => [
    ...[id, name, `${prefix}...`, scopes.join(', '), expiresAt ?? 'never', lastUsedAt ?? 'never'],
    createdAt.slice(0, 10),
  ]);
  return tableText([['ID', 'NAME', 'KEY', 'SCOPES', 'EXPIRES', 'LAST USED', 'CREATED'], ...rows]);
}
