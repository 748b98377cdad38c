/** One request and its answer as they stand on the wire: every field in order, and the octets of the content. */
import { Agent, request } from 'node:http';

export type Sent = {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array | undefined;
};

export type Received = {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
};

export type Connection = {
  exchange(sent: Sent): Promise<Received>;
  close(): void;
};

/** Longer than the program itself allows any of these requests. */
const answerMsMax = 20_000;

/** Methods for which node:http announces no content of its own accord. */
const neverWithContent = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);
const ofConnection = new Set(['Connection', 'Keep-Alive']);

/** One connection that is kept, so that answers cannot differ by how it is treated. */
export function connectTo(port: number): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    close: () => agent.destroy(),
    exchange: ({ method, path, headers, body }) =>
      new Promise((resolve, reject) => {
        const fields = headers.flat();
        if (body !== undefined) fields.push('Content-Length', String(body.byteLength));
        // Without a length, node:http sends the content of most methods in chunks, and the last may be read after the answer, which then closes.
        const mayClose = body === undefined && !neverWithContent.has(method);
        const asked = request(
          { host: '127.0.0.1', port, agent, method, path, headers: fields },
          (response) => {
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('error', reject);
            response.on('end', () => {
              resolve({
                status: response.statusCode ?? 0,
                headers: pairs(response.rawHeaders).filter(([name]) => !mayClose || !ofConnection.has(name)),
                body: Buffer.concat(chunks),
              });
            });
          },
        );
        asked.on('error', reject);
        asked.setTimeout(answerMsMax, () => asked.destroy(new Error(`${method} ${path} was not answered`)));
        asked.end(body);
      }),
  };
}

function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  const found: [string, string][] = [];
  for (let at = 0; at < flat.length; at += 2) found.push([flat[at] ?? '', flat[at + 1] ?? '']);
  return found;
}
