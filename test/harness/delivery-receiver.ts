/** The receiver of webhooks: a real HTTP server that keeps what is delivered octet for octet, and answers each path as it is told. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { after } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { type Ending, listen } from './listening.ts';

export type Received = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
};

export type DeliveryReceiver = {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Oldest first. */
  readonly received: readonly Received[];
  /** The status of its answers, by path; 204 where there is none. */
  readonly answers: Map<string, number>;
  /** The n-th delivery to the path, once it is there. */
  arrival(path: string, count: number): Promise<Received>;
};

/** A receiver until the end of a test, or of all tests of a file. */
export async function startDeliveryReceiver(context: Ending = { after }): Promise<DeliveryReceiver> {
  const received: Received[] = [];
  const answers = new Map<string, number>();
  let listeners: (() => void)[] = [];
  const server = createServer(async (request, response) => {
    const { url: path = '', headers, rawHeaders } = request;
    received.push({ path, headers, rawHeaders, body: await buffer(request) });
    response.writeHead(answers.get(path) ?? 204).end();
    for (const tell of listeners) tell();
    listeners = [];
  });
  const { url } = await listen(server, context);
  return {
    ...{ url, received, answers },
    async arrival(path, count) {
      for (;;) {
        const found = received.filter((each) => each.path === path)[count - 1];
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => listeners.push(resolve));
      }
    },
  };
}

/**
 * What was delivered by the standard scheme.
 * @throws unless the secret signed it, as the library that receivers use judges
 */
export function verify({ headers, body }: Pick<Received, 'headers' | 'body'>, secret: unknown): unknown {
  return new Webhook(String(secret)).verify(body, headers as Record<string, string>);
}
