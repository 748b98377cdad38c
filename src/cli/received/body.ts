/** `comity received body`: the octets of one message on stdout, as its sender signed them. */
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import type { Output, Terminal } from '../terminal.ts';
import { findReceived, receivedPath } from './received-output.ts';

export async function writeBody(
  terminal: Terminal,
  id: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const { contentType } = await findReceived(server, id);
  if (json) {
    const chunks: Buffer[] = [];
    await octetsOf(server, id, async (chunk) => void chunks.push(chunk));
    const body = Buffer.concat(chunks).toString('base64');
    terminal.out(JSON.stringify({ id, contentType, body }, undefined, 2));
  } else {
    // Told by the callback of each write as well; unheard, it would end the program.
    terminal.stdout.on('error', () => undefined);
    await octetsOf(server, id, (chunk) => writeTo(terminal.stdout, chunk));
  }
  return exitCodes.done;
}

function writeTo(stdout: Output, chunk: Buffer): Promise<void> {
  return new Promise((written, failed) => {
    stdout.write(chunk, (error) => (error ? failed(error) : written()));
  });
}

async function octetsOf(
  server: ServerClient,
  id: string,
  take: (chunk: Buffer) => Promise<void>,
): Promise<void> {
  try {
    await server.octets(`${receivedPath(id)}/body`, `body of ${id} any more`, take);
  } catch (error) {
    // A reader that went away, such as `head`, has what it wanted.
    if (!isBrokenPipe(error)) throw error;
  }
}

function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}
