/** `comity keys` and its subcommands. */
import type { Key } from '../../accounts/keys/key-rows.ts';
import { commaSeparated } from '../../config/refusals.ts';
import { isConfirmed } from '../confirm.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { openServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { printable, tableText, tellList } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export type ListArguments = ServerArguments & { readonly limit: number };

export async function listKeys(terminal: Terminal, options: ListArguments, json: boolean): Promise<number> {
  const server = openServer(terminal, options);
  const listed = await server.list<Key>('/keys?sort=-id', options.limit);
  tellList(terminal, listed, json, { text: keysText, none: 'No keys.' });
  return exitCodes.done;
}

export type ShownKey = Key & { readonly key: string };

/** Prints only the key on stdout, for `KEY=$(...)`. */
export function tellNewKey(terminal: Terminal, shown: ShownKey, json: boolean): void {
  if (json) {
    terminal.out(JSON.stringify(shown, undefined, 2));
    return;
  }
  terminal.out(shown.key);
  const { id, name, scopes, expiresAt } = shown;
  const end = expiresAt === undefined ? 'does not expire' : `valid until ${expiresAt}`;
  terminal.err(`comity: ${id} (${printable(name)}): ${scopes.join(', ') || 'no scopes'}, ${end}.`);
  terminal.err('comity: the key is shown only once; keep it now');
}

function keysText(keys: readonly Key[]): string {
  const rows = keys.map(({ id, name, prefix, scopes, expiresAt, lastUsedAt, createdAt }) => [
    ...[id, name, `${prefix}...`, scopes.join(', '), expiresAt ?? 'never', lastUsedAt ?? 'never'],
    createdAt.slice(0, 10),
  ]);
  return tableText([['ID', 'NAME', 'KEY', 'SCOPES', 'EXPIRES', 'LAST USED', 'CREATED'], ...rows]);
}

export type CreateArguments = ServerArguments & {
  readonly publishable?: boolean;
  readonly scope?: readonly string[];
  readonly expires?: string;
  readonly tunnelAllow?: string;
  readonly tunnelDeny?: string;
  readonly tunnelMode?: 'enforce' | 'report';
};

const dayMs = 86_400_000;
const isoDate = /^\d{4}-/;
const daysFromNow = /^([1-9][0-9]{0,4})d$/;

/** `comity keys create`: creates a key that is a principal of its own, and prints it once. */
export async function createKey(
  terminal: Terminal,
  name: string,
  options: CreateArguments,
  json: boolean,
): Promise<number> {
  const { publishable = false, scope, expires } = options;
  const server = openServer(terminal, options);
  const wanted = {
    name,
    kind: publishable ? 'publishable' : 'secret',
    ...(scope === undefined ? {} : { scopes: scope }),
    ...tunnelOf(options),
    ...(expires === undefined ? {} : { expiresAt: timeOf(expires) }),
  };
  tellNewKey(terminal, (await server.ask('POST', '/keys', { json: wanted })) as ShownKey, json);
  return exitCodes.done;
}

/** Without an option for hosts the key has no list. An empty `--tunnel-allow` allows none. */
function tunnelOf({ tunnelAllow, tunnelDeny, tunnelMode }: CreateArguments): Record<string, unknown> {
  if (tunnelAllow === undefined && tunnelDeny === undefined) {
    if (tunnelMode === undefined) return {};
    const message =
      '--tunnel-mode applies to the lists --tunnel-allow and --tunnel-deny; give at least one of them';
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  const tunnel = {
    ...(tunnelMode === undefined ? {} : { mode: tunnelMode }),
    ...(tunnelAllow === undefined ? {} : { allow: commaSeparated(tunnelAllow) }),
    ...(tunnelDeny === undefined ? {} : { deny: commaSeparated(tunnelDeny) }),
  };
  return { tunnel };
}

/** `30d` from now, or an ISO 8601 date or time. */
function timeOf(text: string): string {
  const days = daysFromNow.exec(text)?.[1];
  const at = days === undefined ? Date.parse(text) : Date.now() + Number(days) * dayMs;
  if (Number.isNaN(at) || (days === undefined && !isoDate.test(text))) {
    const message = `--expires must be like 30d or 2030-12-31, not ${JSON.stringify(text)}`;
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  return new Date(at).toISOString();
}

export type RotateArguments = ServerArguments & { readonly overlap?: number };

/** `comity keys rotate`: a new text for the same key. The old text ends at once, or after `--overlap` seconds. */
export async function rotateKey(
  terminal: Terminal,
  id: string,
  options: RotateArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const rotated = await server.ask('POST', `/keys/${encodeURIComponent(id)}/rotate`, {
    json: options.overlap === undefined ? {} : { overlapSeconds: options.overlap },
    subject: `key ${id}`,
  });
  tellNewKey(terminal, rotated as ShownKey, json);
  return exitCodes.done;
}

export type RevokeArguments = ServerArguments & {
  readonly yes?: boolean;
  readonly disableEndpoints?: boolean;
};

type Endpoint = { readonly id: string; readonly url: string; readonly status: 'enabled' | 'disabled' };

/** Bound of the keys and of the endpoints of each key that are listed. */
const madeMax = 10_000;

/**
 * `comity keys revoke`: ends a key, and every key that was made with it, immediately. Endpoints that were made with
 * them stay, since they belong to their owner; the command names them, or disables them with `--disable-endpoints`.
 */
export async function revokeKey(
  terminal: Terminal,
  id: string,
  options: RevokeArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const path = `/keys/${encodeURIComponent(id)}`;
  const subject = `key ${id}`;
  const key = (await server.ask('GET', path, { subject })) as Key;
  const shown = `${key.id} (${printable(key.name)})`;
  if (options.yes !== true && !json && !(await isConfirmed(terminal, `Revoke ${shown}?`))) {
    terminal.err('comity: nothing was revoked');
    return exitCodes.failed;
  }
  // Listed before the revocation, which removes the record of which keys were made with this one.
  const keys = await madeWith(server, key.id);
  await server.ask('DELETE', path, { subject });
  const endpoints: Endpoint[] = [];
  for (const id of keys) endpoints.push(...(await endpointsOf(server, id)));
  const enabled = endpoints.filter(({ status }) => status === 'enabled');
  const disables = options.disableEndpoints === true;
  if (disables) for (const { id } of enabled) await disable(server, id);
  if (json) {
    const shownEndpoints = endpoints.map(({ id, url }) => ({ id, url }));
    const revoked = { id: key.id, name: key.name, revoked: true, endpoints: shownEndpoints };
    terminal.out(JSON.stringify({ ...revoked, endpointsDisabled: disables ? enabled.length : 0 }));
    return exitCodes.done;
  }
  terminal.out(`${shown} was revoked.`);
  for (const { id, url } of enabled) {
    terminal.out(
      `${id} (${printable(url)}) was made with it and ${disables ? 'is disabled now' : 'is still sent to'}.`,
    );
  }
  if (enabled.length > 0 && !disables) terminal.err('comity: --disable-endpoints would disable them');
  return exitCodes.done;
}

/** The key and all keys that were made with it, directly or indirectly. */
async function madeWith(server: ServerClient, key: string): Promise<readonly string[]> {
  const found = [key];
  for (const maker of found) {
    const { items } = await server.list<Key>(`/keys?madeBy=${encodeURIComponent(maker)}`, madeMax);
    found.push(...items.map(({ id }) => id).filter((id) => !found.includes(id)));
    if (found.length > madeMax) break;
  }
  return found;
}

async function endpointsOf(server: ServerClient, key: string): Promise<readonly Endpoint[]> {
  return (await server.list<Endpoint>(`/endpoints?madeBy=${encodeURIComponent(key)}`, madeMax)).items;
}

async function disable(server: ServerClient, id: string): Promise<void> {
  await server.ask('PATCH', `/endpoints/${encodeURIComponent(id)}`, {
    json: { status: 'disabled' },
    subject: `endpoint ${id}`,
  });
}
