/**
 * `comity senders rotate-secret`: a new secret, made by the server or given by the sender. One that is given comes from stdin, since
 * every user of a machine can read command lines.
 */
import type { Environment } from '../../config/load-settings.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { stdinLine } from '../stdin-line.ts';
import { type RotatedSecret, senderPath, tellRotated } from './sender-output.ts';

export type RotateArguments = ServerArguments & {
  readonly overlapSeconds?: number;
  readonly secretFromStdin?: boolean;
  readonly use?: string;
};

const atTerminal = '--secret-from-stdin reads a pipe; without it the server makes a secret';

export async function rotateSenderSecret(
  environment: Environment,
  name: string,
  options: RotateArguments,
  json: boolean,
): Promise<number> {
  const { overlapSeconds, secretFromStdin = false, use } = options;
  const server = openServer(environment, options);
  const secret = secretFromStdin ? await stdinLine('secret', atTerminal) : undefined;
  const rotated = await server.ask('POST', `${senderPath(name)}/rotate-secret`, {
    json: {
      ...(overlapSeconds === undefined ? {} : { overlapSeconds }),
      ...(secret === undefined ? {} : { secret }),
      ...(use === undefined ? {} : { use }),
    },
    subject: `sender ${name}`,
  });
  tellRotated(rotated as RotatedSecret, secretFromStdin, json);
  return exitCodes.done;
}
