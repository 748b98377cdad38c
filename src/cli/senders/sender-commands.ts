/** `comity senders` and its subcommands. The secrets of a sender are never shown again. */

import { stdinLine } from '../confirm.ts';
import { exitCodes } from '../failure.ts';
import { openServer, type ServerArguments } from '../server-client.ts';
import { labelledLines, printable, tableText, tellList } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export async function showSender(
  terminal: Terminal,
  name: string,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openServer(terminal, options);
  const sender = (await server.ask('GET', senderPath(name), { subject: `sender ${name}` })) as Sender;
  terminal.out(json ? JSON.stringify(sender, undefined, 2) : senderText(sender));
  return exitCodes.done;
}

/** A sender as the server shows it. */
export type Sender = Secrets & {
  readonly name: string;
  readonly description: string;
  readonly preset: string | null;
  readonly path: string;
  readonly signature: {
    readonly kind: string;
    readonly header: string;
    readonly hash?: string;
    readonly encoding?: string;
    readonly toleranceSeconds?: number;
  };
  readonly handOn: { readonly kind: string } | Forward;
  readonly schedule: readonly number[];
  readonly inFlightMax: number | null;
};

type Secrets = {
  readonly secretSource: string;
  readonly secretVariable: string;
  readonly secretCount: number;
  readonly oldSecretsUntil: string | null;
};

type Forward = Secrets & { readonly kind: 'forward'; readonly url: string; readonly scheme: string };

export type RotatedSecret = { readonly sender: string; readonly use: string; readonly secret: string };

export function senderPath(name: string): string {
  return `/senders/${encodeURIComponent(name)}`;
}

function senderText(sender: Sender): string {
  const { name, description, preset, path, handOn, schedule, inFlightMax } = sender;
  const forward = forwardOf(sender);
  return labelledLines([
    ['name', name],
    ['description', description === '' ? undefined : description],
    ['path', path],
    ['preset', preset],
    ['signature', signatureText(sender)],
    ['secrets', secretsText(sender)],
    ['handed on', forward === undefined ? handOn.kind : `forwarded to ${forward.url} as ${forward.scheme}`],
    ['its secrets', forward === undefined ? undefined : secretsText(forward)],
    ['retries', handOn.kind === 'inbox' ? undefined : `after ${schedule.join(', ')} s`],
    ['in flight', inFlightMax === null ? undefined : `at most ${inFlightMax}`],
  ]);
}

export function sendersText(senders: readonly Sender[]): string {
  const rows = senders.map((sender) => [
    ...[
      sender.name,
      sender.preset ?? '',
      sender.handOn.kind,
      sender.secretSource,
      String(sender.secretCount),
    ],
    sender.path,
  ]);
  return tableText([['NAME', 'PRESET', 'HANDED ON', 'SECRETS FROM', 'SECRETS', 'PATH'], ...rows]);
}

export function tellRotated(
  terminal: Terminal,
  rotated: RotatedSecret,
  isGiven: boolean,
  json: boolean,
): void {
  if (json) {
    terminal.out(JSON.stringify(rotated, undefined, 2));
    return;
  }
  const sender = printable(rotated.sender);
  if (isGiven) {
    terminal.err(`comity: ${sender}: the given secret is valid from now on`);
    return;
  }
  terminal.out(rotated.secret);
  const whom = rotated.use === 'forward' ? 'the receiver of its forwarded messages' : 'the sender';
  terminal.err(`comity: ${sender}: the secret is shown only once; give it to ${whom} now`);
}

function forwardOf({ handOn }: Sender): Forward | undefined {
  return handOn.kind === 'forward' && 'url' in handOn ? handOn : undefined;
}

function signatureText({
  signature: { kind, header, hash, encoding, toleranceSeconds = 0 },
}: Sender): string {
  if (kind === 'token') return `a token in ${header}`;
  const window = toleranceSeconds === 0 ? '' : `, at most ${toleranceSeconds} s old`;
  return `HMAC ${hash} in ${header} as ${encoding}${window}`;
}

function secretsText({ secretSource, secretVariable, secretCount, oldSecretsUntil }: Secrets): string {
  const from =
    secretSource === 'environment' ? `from ${secretVariable}` : `kept here, ${secretVariable} is not set`;
  const until = oldSecretsUntil === null ? '' : `; the last of the old ones until ${oldSecretsUntil}`;
  return `${secretCount} ${from}${until}`;
}

export async function listSenders(
  terminal: Terminal,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const { items } = (await openServer(terminal, options).ask('GET', '/senders')) as {
    readonly items: readonly Sender[];
  };
  tellList(terminal, { items, more: false }, json, { text: sendersText, none: 'No senders are declared.' });
  return exitCodes.done;
}

export type RotateArguments = ServerArguments & {
  readonly overlapSeconds?: number;
  readonly secretFromStdin?: boolean;
  readonly use?: string;
};

const atTerminal = '--secret-from-stdin reads a pipe; without it the server makes a secret';

/**
 * `comity senders rotate-secret`: sets a secret that the server generates or the sender gave. The latter comes from
 * stdin, since every user of a machine can read command lines.
 */
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
