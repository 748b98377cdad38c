/** `comity endpoints rotate-secret`: a new secret. The old one signs no more at once, or after `--overlap` seconds. */
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { type ShownSecret, tellNewSecret } from './endpoint-output.ts';
import { endpointPath } from './show.ts';

export type RotateArguments = ServerArguments & { readonly overlap?: number };

export async function rotateSecret(
  terminal: Terminal,
  id: string,
  options: RotateArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const rotated = await server.ask('POST', `${endpointPath(id)}/rotate-secret`, {
    json: options.overlap === undefined ? {} : { overlapSeconds: options.overlap },
    subject: `endpoint ${id}`,
  });
  tellNewSecret(terminal, rotated as ShownSecret, json);
  return exitCodes.done;
}
