/**
 * `comity senders rotate-secret`: a new secret, made by the server or given by the sender. One that is given comes from stdin, since
 * every user of a machine can read command lines.
 */
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { stdinLine } from '../stdin-line.ts';
import type { Terminal } from '../terminal.ts';
import { type RotatedSecret, senderPath, tellRotated } from './sender-output.ts';

export type RotateArguments = ServerArguments & {
  readonly overlapSeconds?: number;
  readonly secretFromStdin?: boolean;
  readonly use?: string;
};

const atTerminal = '--secret-from-stdin reads a pipe; without it the server makes a secret';

export async function rotateSenderSecret(
  terminal: Terminal,
  name: string,
  options: RotateArguments,
  json: boolean,
): Promise<number> {
  const { overlapSeconds, secretFromStdin = false, use } = options;
  const server = openServer(terminal, options);
  const secret = secretFromStdin ? await stdinLine(terminal.stdin, 'secret', atTerminal) : undefined;
  const rotated = await server.ask('POST', `${senderPath(name)}/rotate-secret`, {
    json: {
      ...(overlapSeconds === undefined ? {} : { overlapSeconds }),
      ...(secret === undefined ? {} : { secret }),
      ...(use === undefined ? {} : { use }),
    },
    subject: `sender ${name}`,
  });
  tellRotated(terminal, rotated as RotatedSecret, secretFromStdin, json);
  return exitCodes.done;
}
