/** A real mail server on a free port of this machine, and the mails that it took. */
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export type Received = {
  readonly from: string;
  readonly to: readonly string[];
  readonly secure: boolean;
  readonly user: string | undefined;
  /** As it came, with its header. */
  readonly raw: string;
};

export type MailServer = {
  readonly port: number;
  readonly received: Received[];
  /** Resolves when so many mails have been taken. */
  until(count: number): Promise<void>;
};

/** What tells of the end of a test, or of all of them. */
export type Ending = { readonly after: (dispose: () => unknown) => unknown };

/** With the certificate for localhost that smtp-server brings for tests, unless others are given. */
export async function startMailServer(context: Ending, options: SMTPServerOptions = {}): Promise<MailServer> {
  const received: Received[] = [];
  let listeners: (() => void)[] = [];
  const server = new SMTPServer({
    disableReverseLookup: true,
    authOptional: true,
    hideSTARTTLS: true,
    onData(stream, session, done) {
      const pieces: Buffer[] = [];
      stream.on('data', (piece: Buffer) => pieces.push(piece));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          secure: session.secure,
          user: session.user as string | undefined,
          raw: Buffer.concat(pieces).toString('utf8'),
        });
        done();
        for (const tell of listeners) tell();
        listeners = [];
      });
    },
    ...options,
  });
  // A client that breaks off is part of the tests.
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  context.after(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    async until(count) {
      while (received.length < count) {
        await new Promise<void>((resolve) => {
          listeners.push(resolve);
        });
      }
    },
  };
}

/** Name and value of the header fields, unfolded, in order. */
export function headerOf(raw: string): readonly (readonly [name: string, value: string])[] {
  const head = raw.slice(0, raw.indexOf('\r\n\r\n')).replaceAll(/\r\n[ \t]+/g, ' ');
  return head.split('\r\n').map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
  });
}

export function fieldOf(raw: string, name: string): string | undefined {
  return headerOf(raw).find(([field]) => field.toLowerCase() === name.toLowerCase())?.[1];
}

/** The text, its transfer coding undone. */
export function textOf(raw: string): string {
  const body = raw.slice(raw.indexOf('\r\n\r\n') + 4).replaceAll('\r\n', '\n');
  if (fieldOf(raw, 'Content-Transfer-Encoding') !== 'quoted-printable') return body;
  const octets = body
    .replaceAll('=\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(octets, 'latin1').toString('utf8');
}
