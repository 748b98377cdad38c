/** `comity events types`: which events there are, from the declarations of the collections and of the configuration. */
import { exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import { tableText } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export type EventType = {
  readonly type: string;
  readonly description: string;
  readonly schema: unknown;
  /** A whole event. */
  readonly sample: unknown;
};

export async function listEventTypes(
  terminal: Terminal,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const { items } = (await server.ask('GET', '/event-types')) as { readonly items: readonly EventType[] };
  const rows = items.map(({ type, description }) => [type, description]);
  terminal.out(json ? JSON.stringify(items, undefined, 2) : tableText([['TYPE', 'WHAT IT TELLS'], ...rows]));
  return exitCodes.done;
}
