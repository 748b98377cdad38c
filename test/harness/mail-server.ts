/** The mail sink: a real SMTP server on a free port of this machine, and the mails that it took. */
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import type { Ending } from './listening.ts';
import { eventually } from './until.ts';

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
  /** For COMITY_SMTP_URL. */
  readonly url: string;
  readonly received: Received[];
  /** Resolves when so many mails have been taken. */
  until(count: number): Promise<void>;
  /** The next mail to this address that was not given out yet. */
  next(to: string): Promise<Received>;
};

export const mailUser = { name: 'comity-mailer', password: 'smtp-Passw0rd-of-the-mailer' };

/** It takes mails from that user alone, without TLS, which the loopback interface may do without. */
const forUser: SMTPServerOptions = {
  authOptional: false,
  allowInsecureAuth: true,
  onAuth({ username, password }, _session, callback) {
    const isKnown = username === mailUser.name && password === mailUser.password;
    callback(isKnown ? null : new Error('unknown user'), isKnown ? { user: username } : undefined);
  },
};

/** A server for the tests of a file, at which `mailUser` logs in. */
export async function startUsersMailServer(context: Ending = { after }): Promise<MailServer> {
  const server = await startMailServer(context, forUser);
  return { ...server, url: `smtp://${mailUser.name}:${mailUser.password}@127.0.0.1:${server.port}` };
}

/** With the certificate for localhost that smtp-server brings for tests, unless others are given. */
export async function startMailServer(
  context: Ending,
  options: SMTPServerOptions & { readonly port?: number } = {},
): Promise<MailServer> {
  const received: Received[] = [];
  const given = new Set<Received>();
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
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  context.after(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    url: `smtp://127.0.0.1:${port}`,
    received,
    next: (to) =>
      eventually(async () => {
        const found = received.find((mail) => mail.to.includes(to) && !given.has(mail));
        if (found !== undefined) given.add(found);
        return found;
      }, `a mail to ${to}`),
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

/** The single-use code in a mail: 256 bits in base64url, wherever it stands. */
export function codeIn({ raw }: Pick<Received, 'raw'>): string {
  const code = /(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/.exec(textOf(raw))?.[0];
  if (code === undefined) throw new Error(`no code is in the mail:\n${raw}`);
  return code;
}
