/**
 * A proxy between a client and the program that loses answers after the program has carried a request out, answers in its place, or holds a
 * request back: what networks and proxies do to a client at the worst moment.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { type Ending, listen } from '../harness/listening.ts';
import { until } from '../harness/until.ts';

export type Fault =
  /** The program answers, and the connection to the client is cut in its place. */
  | 'lost'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** Forwarded when the promise resolves. */
  | Promise<unknown>;

export type Passed = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
};

export type FaultyProxy = {
  /** `http://127.0.0.1:PORT/api/v1` */
  readonly baseUrl: string;
  /** All requests so far. */
  readonly passed: readonly Passed[];
  /** Answers that were lost so far. */
  readonly lost: number;
  /** Requests with the method. */
  count(method: string): number;
  /** Decides about each request; undefined: it is forwarded. */
  fault: (request: Passed) => Fault | undefined;
  /** Cuts every connection of a client. */
  cut(): void;
};

/** @param portOf of the program now, which may be started again */
export async function startFaultyProxy(portOf: () => number, ending: Ending): Promise<FaultyProxy> {
  const passed: Passed[] = [];
  const proxy = {
    baseUrl: '',
    passed,
    lost: 0,
    count: (method: string) => passed.filter((each) => each.method === method).length,
    fault: (): Fault | undefined => undefined,
    cut: () => {
      for (const socket of listening.sockets) socket.destroy();
    },
  } as FaultyProxy & { baseUrl: string; lost: number };
  const server = createServer(async (from, to) => {
    const { method = '', url = '', headers } = from;
    const asked: Passed = { method, url, headers };
    passed.push(asked);
    const fault = proxy.fault(asked);
    if (fault instanceof Promise) await fault;
    if (fault === undefined || fault === 'lost' || fault instanceof Promise) {
      const onLost = (): void => {
        proxy.lost += 1;
      };
      forward(portOf(), from, to, fault === 'lost' ? onLost : undefined);
      return;
    }
    from.resume();
    to.writeHead(fault.status, { 'Content-Type': 'text/plain', ...fault.headers });
    to.end(fault.body ?? '');
  });
  server.on('upgrade', (from: IncomingMessage, socket, head) => {
    const asked: Passed = { method: 'UPGRADE', url: from.url ?? '', headers: from.headers };
    passed.push(asked);
    if (proxy.fault(asked) !== undefined) {
      socket.destroy();
      return;
    }
    const upstream = connect(portOf(), '127.0.0.1', () => {
      const fields = from.rawHeaders.flatMap((name, at) =>
        at % 2 === 0 ? `${name}: ${from.rawHeaders[at + 1]}` : [],
      );
      upstream.write(`GET ${from.url} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
    upstream.on('close', () => socket.destroy());
  });
  const listening = await listen(server, ending);
  // The pool of fetch hears of the end of its connections a moment later.
  ending.after(() => until(() => !process.getActiveResourcesInfo().includes('TCPSocketWrap')));
  proxy.baseUrl = `${listening.url}/api/v1`;
  return proxy;
}

function forward(port: number, from: IncomingMessage, to: ServerResponse, onLost?: () => void): void {
  const { method, url: path, headers } = from;
  const upstream = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
    if (onLost !== undefined) {
      answer.resume();
      answer.on('end', () => {
        to.socket?.destroy();
        onLost();
      });
      return;
    }
    to.writeHead(answer.statusCode ?? 502, answer.headers);
    // The head of a stream at once.
    to.flushHeaders();
    answer.pipe(to);
    answer.on('error', () => to.socket?.destroy());
  });
  upstream.on('error', () => to.socket?.destroy());
  to.on('close', () => upstream.destroy());
  from.pipe(upstream);
}
