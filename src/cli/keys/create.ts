/** `comity keys create`: a key that is a principal of its own, with no more than it needs. It is printed this once. */
import { partsOf } from '../../config/refuse-addresses.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import type { Terminal } from '../terminal.ts';
import { type ShownKey, tellNewKey } from './key-output.ts';

export type CreateArguments = ServerArguments & {
  readonly publishable?: boolean;
  readonly scope?: readonly string[];
  readonly expires?: string;
  readonly tunnelAllow?: string;
  readonly tunnelDeny?: string;
  readonly tunnelMode?: 'enforce' | 'report';
};

const dayMs = 86_400_000;
const isoDate = /^\d{4}-/;
const daysFromNow = /^([1-9][0-9]{0,4})d$/;

export async function createKey(
  terminal: Terminal,
  name: string,
  options: CreateArguments,
  json: boolean,
): Promise<number> {
  const { publishable = false, scope, expires } = options;
  const server = openServer(terminal, options);
  const wanted = {
    name,
    kind: publishable ? 'publishable' : 'secret',
    ...(scope === undefined ? {} : { scopes: scope }),
    ...tunnelOf(options),
    ...(expires === undefined ? {} : { expiresAt: timeOf(expires) }),
  };
  tellNewKey(terminal, (await server.ask('POST', '/keys', { json: wanted })) as ShownKey, json);
  return exitCodes.done;
}

/** Nothing was said of hosts: the key has no list. An empty `--tunnel-allow` lets none through. */
function tunnelOf({ tunnelAllow, tunnelDeny, tunnelMode }: CreateArguments): Record<string, unknown> {
  if (tunnelAllow === undefined && tunnelDeny === undefined) {
    if (tunnelMode === undefined) return {};
    const message =
      '--tunnel-mode says what becomes of the lists --tunnel-allow and --tunnel-deny; give one of them';
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  const tunnel = {
    ...(tunnelMode === undefined ? {} : { mode: tunnelMode }),
    ...(tunnelAllow === undefined ? {} : { allow: partsOf(tunnelAllow) }),
    ...(tunnelDeny === undefined ? {} : { deny: partsOf(tunnelDeny) }),
  };
  return { tunnel };
}

/** `30d` from now on, or a date or a time as ISO 8601 writes it. */
function timeOf(text: string): string {
  const days = daysFromNow.exec(text)?.[1];
  const at = days === undefined ? Date.parse(text) : Date.now() + Number(days) * dayMs;
  if (Number.isNaN(at) || (days === undefined && !isoDate.test(text))) {
    const message = `--expires must be like 30d or 2030-12-31, not ${JSON.stringify(text)}`;
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  return new Date(at).toISOString();
}
