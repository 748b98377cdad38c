/**
 * `comity keys revoke`: from that moment on the key, and every key that was made with it, is good nowhere. Endpoints that were made with
 * them stay, since they belong to their owner; they are named, or disabled with `--disable-endpoints`.
 */
import type { Key } from '../../auth/keys/key-rows.ts';
import { isConfirmed } from '../confirm.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export type RevokeArguments = ServerArguments & {
  readonly yes?: boolean;
  readonly disableEndpoints?: boolean;
};

type Endpoint = { readonly id: string; readonly url: string; readonly status: 'enabled' | 'disabled' };

/** Keys and endpoints that are looked at; more of them are no theft. */
const madeMax = 10_000;

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
  // Before the revocation, after which nothing tells which keys were made with this one.
  const keys = await madeWith(server, key.id);
  await server.ask('DELETE', path, { subject });
  const endpoints: Endpoint[] = [];
  for (const id of keys) endpoints.push(...(await endpointsOf(server, id)));
  const enabled = endpoints.filter(({ status }) => status === 'enabled');
  const disables = options.disableEndpoints === true;
  if (disables) for (const { id } of enabled) await disable(server, id);
  if (json) {
    const shownEndpoints = endpoints.map(({ id, url }) => ({ id, url }));
    const told = { id: key.id, name: key.name, revoked: true, endpoints: shownEndpoints };
    terminal.out(JSON.stringify({ ...told, endpointsDisabled: disables ? enabled.length : 0 }));
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

/** The key and all that were made with it, directly or by another. */
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
