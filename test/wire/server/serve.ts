/** A listener in this process on a free port, in cleartext or over TLS, with what it observed, ended with the test. */
import type { TestContext } from 'node:test';
import type { Handler, Request, Response } from '../../../src/http/message.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import type { ServerLimits } from '../../../src/server/limits.ts';
import { createListener, type Listener, type ListenerOptions } from '../../../src/server/listener.ts';
import { fixedCertificate } from './certificates.ts';
import { openRaw, openRawTls, type RawClient } from './raw-client.ts';

export type Served = {
  readonly listener: Listener;
  readonly port: number;
  readonly observed: Observation[];
  open(): Promise<RawClient>;
};

export type PortKind = 'cleartext' | 'TLS';

/** For tables of what both ports must do alike. */
export const portKinds: readonly PortKind[] = ['cleartext', 'TLS'];

export type ServeOptions = Pick<ListenerOptions, 'proxy' | 'behindProxy' | 'memory'> & {
  /** What the port speaks; default: cleartext. */
  readonly kind?: PortKind;
};

export async function serve(
  test: TestContext,
  handler: Handler,
  limits: Partial<ServerLimits> = {},
  { kind = 'cleartext', ...options }: ServeOptions = {},
): Promise<Served> {
  const observed: Observation[] = [];
  const listener = createListener({
    handler,
    observe: (observation) => observed.push(observation),
    limits,
    apiVersion: '1',
    methods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
    ...options,
  });
  const tls = { certificate: fixedCertificate(), alpn: 'h2,http/1.1', port: undefined } as const;
  const { port } = await listener.listen('127.0.0.1', 0, { tls: kind === 'TLS' ? tls : undefined });
  const clients: RawClient[] = [];
  test.after(async () => {
    for (const client of clients) client.destroy();
    await listener.drain(0);
  });
  return {
    listener,
    port,
    observed,
    open: async () => {
      const client = await (kind === 'TLS' ? openRawTls(port) : openRaw(port));
      clients.push(client);
      return client;
    },
  };
}

/** Answers every request with what it was. */
export function echo(request: Request): Response {
  return text(200, `${request.method} ${request.target}`);
}

export function text(status: number, content: string | null): Response {
  return { status, fields: ['Content-Type', 'text/plain'], content };
}

/** Reads the content and answers with its length, or with the code why it could not be read. */
export function countContent(bytesMax: number): Handler {
  return async (request) => {
    const content = await request.readContent(bytesMax);
    if (content.ok) return text(200, String(content.bytes.length));
    const status =
      content.code === 'request_timeout' ? 408 : content.code === 'content_too_large' ? 413 : 400;
    return { ...text(status, content.code), close: true, code: content.code };
  };
}
