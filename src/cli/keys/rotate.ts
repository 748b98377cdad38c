/** `comity keys rotate`: a new text for the same key. The old one is dead at once, or after `--overlap` seconds. */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { type ShownKey, tellNewKey } from './key-output.ts';

export type RotateArguments = ServerArguments & { readonly overlap?: number };

export async function rotateKey(
  environment: Environment,
  id: string,
  options: RotateArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(environment, options);
  const rotated = await server.ask('POST', `/keys/${encodeURIComponent(id)}/rotate`, {
    json: options.overlap === undefined ? {} : { overlapSeconds: options.overlap },
    subject: `key ${id}`,
  });
  tellNewKey(rotated as ShownKey, json);
  return exitCodes.done;
}
