/** Mutants of the clean server over HTTP/2. */
import { connect, createServer } from 'node:net';
import type { Notes } from '../../conduct-suite/clean-server.ts';
import { type Ending, listen } from '../../harness/listening.ts';

/** Clauses whose server answers HTTP/2 in another way. */
export const http2Mutants: Readonly<Record<string, (notes: Notes) => Notes>> = {
  'h2-same-answer': (notes) => (asked) => ({ ...notes(asked), json: { other: true } }),
  'h2-head': (notes) => {
    let failures = 0;
    return (asked) => {
      const answer = notes(asked);
      if (answer.status === 404) failures += 1;
      return failures > 0 ? { status: 500 } : answer;
    };
  },
  'h2-at-once': (notes) => {
    let before: Parameters<Notes>[0] | undefined;
    return (asked) => {
      const answer = notes(before ?? asked);
      before = asked;
      return answer;
    };
  },
};

const frameHeadBytes = 9;
const headersFrame = 1;
/** `connection: close` as a literal field that no table has (RFC 7541 §6.2.2). */
const connectionField = Buffer.from('\0\nconnection\x05close', 'latin1');

/** Adds a field of a connection to each answer of HTTP/2. @returns the port of the server that does it */
export async function addConnectionField(port: number, context: Ending): Promise<number> {
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    let waiting: Buffer = Buffer.alloc(0);
    client.pipe(upstream);
    upstream.on('data', (chunk: Buffer) => {
      waiting = Buffer.concat([waiting, chunk]);
      if (waiting.toString('latin1', 0, 5) === 'HTTP/') {
        client.write(waiting);
        waiting = Buffer.alloc(0);
      } else waiting = writeFrames(waiting, (frame) => client.write(frame));
    });
    upstream.on('close', () => client.destroy());
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
  });
  return (await listen(server, context)).port;
}

/** @returns what is no whole frame yet */
function writeFrames(octets: Buffer, write: (frame: Buffer) => void): Buffer {
  let rest = octets;
  while (rest.length >= frameHeadBytes) {
    const length = rest.readUIntBE(0, 3);
    if (rest.length < frameHeadBytes + length) break;
    const frame = rest.subarray(0, frameHeadBytes + length);
    rest = rest.subarray(frameHeadBytes + length);
    if (frame[3] !== headersFrame) write(frame);
    else {
      const longer = Buffer.concat([frame, connectionField]);
      longer.writeUIntBE(length + connectionField.length, 0, 3);
      write(longer);
    }
  }
  return rest;
}
