/** A reverse proxy of node:http that serves a program under a path of its own, and removes that path from requests. */
import { createServer, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { type Ending, type Listening, listen } from './listening.ts';

export type PrefixProxy = Listening & {
  /** Starts to pass requests on to this port. */
  lead(port: number): void;
};

/** @param root such as `/backend`; other paths are answered 404 with the text `outside` */
export async function startPrefixProxy(root: string, context?: Ending): Promise<PrefixProxy> {
  let behind = 0;
  const isInside = (url: string) => url.startsWith(`${root}/`);
  const passOn = (incoming: IncomingMessage) =>
    request({
      ...{ host: '127.0.0.1', port: behind, method: incoming.method, headers: incoming.headers },
      path: (incoming.url ?? '').slice(root.length),
    });
  const server = createServer((incoming, answer) => {
    if (!isInside(incoming.url ?? '')) {
      answer.writeHead(404).end('outside');
      return;
    }
    const passed = passOn(incoming);
    passed.on('response', (from) => {
      answer.writeHead(from.statusCode ?? 502, from.rawHeaders);
      from.pipe(answer);
    });
    passed.on('error', () => answer.destroy());
    answer.on('close', () => passed.destroy());
    incoming.pipe(passed);
  });
  server.on('upgrade', (incoming: IncomingMessage, client: Socket, head: Buffer) => {
    if (!isInside(incoming.url ?? '')) {
      client.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
      return;
    }
    const passed = passOn(incoming);
    passed.on('upgrade', (from, upstream: Socket, first) => {
      const fields = from.rawHeaders.flatMap((name, at, all) =>
        at % 2 === 0 ? [`${name}: ${all[at + 1]}`] : [],
      );
      client.write(`HTTP/1.1 101 Switching Protocols\r\n${fields.join('\r\n')}\r\n\r\n`);
      upstream.unshift(first);
      upstream.on('error', () => client.destroy());
      client.on('error', () => upstream.destroy());
      upstream.pipe(client).pipe(upstream);
    });
    passed.on('error', () => client.destroy());
    passed.end(head);
  });
  const listening = await listen(server, context);
  const lead = (port: number): void => {
    behind = port;
  };
  return { ...listening, lead };
}
