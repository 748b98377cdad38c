/** `comity keys rotate`: a new text for the same key. The old one is dead at once, or after `--overlap` seconds. */
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { type ShownKey, tellNewKey } from './key-output.ts';

export type RotateArguments = ServerArguments & { readonly overlap?: number };

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
