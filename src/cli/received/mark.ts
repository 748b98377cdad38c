/** `comity received mark`: says what became of a message by hand. It is handed on no more, unless it is replayed. */
import type { Received } from '../../model/received.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { receivedPath, subjectOf } from './received-output.ts';

export type MarkArguments = ServerArguments & { readonly as: string };

export async function markReceived(
  terminal: Terminal,
  id: string,
  options: MarkArguments,
  json: boolean,
): Promise<number> {
  const asked = { json: { status: options.as }, subject: subjectOf(id) };
  const marked = (await openServer(terminal, options).ask('PATCH', receivedPath(id), asked)) as Received;
  terminal.out(json ? JSON.stringify(marked, undefined, 2) : `${id} is ${marked.status}.`);
  return exitCodes.done;
}
