/** A receiver over bare TCP that can do everything wrong: it is told of each request once it is there whole, and writes what it likes. */
import { createServer, type Socket } from 'node:net';
import { listen } from '../harness/listening.ts';

export type RawRequest = { readonly head: string; readonly body: string };

export type RawReceiver = {
  readonly port: number;
  readonly url: URL;
  readonly requests: RawRequest[];
  /** Connections that were made, closed ones included. */
  readonly connections: () => number;
  readonly close: () => Promise<void>;
};

export type Answer = (socket: Socket, request: RawRequest, count: number) => void;

/** `onHead`: told of a request as soon as its header section is there. */
export async function startRawReceiver(
  answer: Answer,
  { onHead, host = '127.0.0.1' }: { onHead?: (socket: Socket) => void; host?: string } = {},
): Promise<RawReceiver> {
  const requests: RawRequest[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    let text = '';
    socket.on('data', (chunk) => {
      if (onHead !== undefined) {
        onHead(socket);
        return;
      }
      text += chunk.toString('latin1');
      for (;;) {
        const headEnd = text.indexOf('\r\n\r\n');
        if (headEnd < 0) return;
        const head = text.slice(0, headEnd);
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        const end = headEnd + 4 + length;
        if (text.length < end) return;
        const request = { head, body: text.slice(headEnd + 4, end) };
        text = text.slice(end);
        requests.push(request);
        answer(socket, request, requests.length);
      }
    });
  });
  const { port, url, close } = await listen(server, undefined, host);
  return { port, url: new URL(`${url}/hooks?a=b`), requests, connections: () => connections, close };
}

/** An answer with its length said. */
export function plainAnswer(status: number, body: string | Buffer, fields: readonly string[] = []): Buffer {
  const content = Buffer.from(body);
  const head = [`HTTP/1.1 ${status} X`, `content-length: ${content.length}`, ...fields].join('\r\n');
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`), content]);
}
