/** One transfer over loopback by a client that costs little: it reads into one buffer, which it never looks at, and sends one chunk again and again. */
import { randomBytes } from 'node:crypto';
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';

const KiB = 1024;
const chunk = randomBytes(256 * KiB);
const slowChunk = chunk.subarray(0, 64 * KiB);
const boundary = 'b0undary';

/** Octets that are sent; at full speed, or at a steady rate. */
export type Upload = { readonly bytes: number; readonly bytesPerSecond?: number };

type Exchange = {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly content?: string;
  readonly upload?: Upload;
  /** The field of a multipart form in which the upload is sent. */
  readonly form?: string;
};

/** @throws where the answer is not 2xx */
export async function exchange(
  asked: Exchange,
): Promise<{ readonly location: string | undefined; readonly body: string }> {
  const { port, method, path, content = '', upload, form } = asked;
  const [head, tail] =
    form === undefined
      ? [content, '']
      : [
          `--${boundary}\r\nContent-Disposition: form-data; name="${form}"; filename="file.bin"\r\n` +
            'Content-Type: application/octet-stream\r\n\r\n',
          `\r\n--${boundary}--\r\n`,
        ];
  const length = head.length + (upload?.bytes ?? 0) + tail.length;
  const type = form === undefined ? {} : { 'content-type': `multipart/form-data; boundary=${boundary}` };
  const headers = { ...asked.headers, ...type, 'content-length': length };
  const { promise, resolve, reject } = Promise.withResolvers<{
    headers: IncomingHttpHeaders;
    body: string;
  }>();
  const sending = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
    let body = '';
    response.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    response.once('end', () => {
      const status = response.statusCode ?? 0;
      if (status >= 200 && status < 300) resolve({ headers: response.headers, body });
      else reject(new Error(`${method} ${path} was answered ${status}: ${body}`));
    });
  });
  sending.once('error', reject);
  if (upload === undefined) sending.end(head);
  else await pipeline(Readable.from(octets(head, upload, tail), { objectMode: true }), sending);
  const { headers: answered, body } = await promise;
  return { location: answered.location, body };
}

async function* octets(
  head: string,
  { bytes, bytesPerSecond }: Upload,
  tail: string,
): AsyncGenerator<Uint8Array> {
  if (head !== '') yield Buffer.from(head);
  const piece = bytesPerSecond === undefined ? chunk : slowChunk;
  const begun = performance.now();
  for (let sent = 0; sent < bytes; sent += piece.length) {
    const dueMs = bytesPerSecond === undefined ? 0 : begun + (sent / bytesPerSecond) * 1000;
    if (dueMs > performance.now()) await wait(dueMs - performance.now());
    yield piece.subarray(0, bytes - sent);
  }
  if (tail !== '') yield Buffer.from(tail);
}

/** @throws where fewer octets came than were asked for */
export function download(
  port: number,
  path: string,
  bytes: number,
  fields: readonly string[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = 0;
    const callback = (length: number): boolean => {
      received += length;
      return true;
    };
    const socket = connect({
      port,
      host: '127.0.0.1',
      onread: { buffer: Buffer.alloc(chunk.length), callback },
    });
    const lines = [`GET ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...fields];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    socket.once('error', reject);
    socket.once('close', () => {
      // The header section makes it more.
      if (received > bytes) resolve();
      else reject(new Error(`${received} octets came of ${bytes} at ${path}`));
    });
  });
}
