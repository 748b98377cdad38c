/** `comity endpoints create`: a receiver, and the secret that it verifies with, which is printed this once. */
import { CommandFailure, exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { type ShownSecret, tellNewSecret } from './endpoint-output.ts';

export type CreateArguments = ServerArguments & {
  readonly to: string;
  /** Absent: everything. */
  readonly events?: readonly string[];
  readonly scheme?: string;
  readonly mode?: string;
  readonly tenant?: string;
  readonly description?: string;
  readonly header?: readonly string[];
  readonly maxInFlight?: number;
  readonly rate?: number;
};

export async function createEndpoint(
  terminal: Terminal,
  options: CreateArguments,
  json: boolean,
): Promise<number> {
  const { to, events = ['*'], scheme, mode, tenant, description, header, maxInFlight, rate } = options;
  const headers = header === undefined ? undefined : headersOf(header);
  const server = openWebhookServer(terminal, options);
  const made = await server.ask('POST', '/endpoints', {
    json: {
      ...{ url: to, events },
      ...(scheme === undefined ? {} : { scheme }),
      ...(mode === undefined ? {} : { mode }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(description === undefined ? {} : { description }),
      ...(headers === undefined ? {} : { headers }),
      ...(maxInFlight === undefined ? {} : { maxInFlight }),
      ...(rate === undefined ? {} : { ratePerSecond: rate }),
    },
  });
  tellNewSecret(terminal, made as ShownSecret, json);
  return exitCodes.done;
}

/** @param lines `Name: value`, as they stand in a request; the server judges names and values */
function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim();
    if (colon < 1 || name === '' || headers.has(name)) {
      const problem = headers.has(name) ? `has ${name} twice` : `must be like "Name: value"`;
      const message = `--header ${problem}, not ${JSON.stringify(line)}`;
      throw new CommandFailure(headers.has(name) ? `--header ${problem}` : message, {
        exitCode: exitCodes.usage,
      });
    }
    headers.set(name, line.slice(colon + 1).trim());
  }
  return Object.fromEntries(headers);
}
