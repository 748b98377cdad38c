/** `comity keys revoke`: from that moment on the key is good nowhere. */
import type { Key } from '../../auth/keys/key-rows.ts';
import type { Environment } from '../../config/load-settings.ts';
import { isConfirmed } from '../confirm.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { printable } from '../table.ts';

export type RevokeArguments = ServerArguments & { readonly yes?: boolean };

export async function revokeKey(
  environment: Environment,
  id: string,
  options: RevokeArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(environment, options);
  const path = `/keys/${encodeURIComponent(id)}`;
  const subject = `key ${id}`;
  const key = (await server.ask('GET', path, { subject })) as Key;
  const shown = `${key.id} (${printable(key.name)})`;
  if (options.yes !== true && !json && !(await isConfirmed(`Revoke ${shown}?`))) {
    console.error('comity: nothing was revoked');
    return exitCodes.failed;
  }
  await server.ask('DELETE', path, { subject });
  console.log(json ? JSON.stringify({ id: key.id, name: key.name, revoked: true }) : `${shown} was revoked.`);
  return exitCodes.done;
}
