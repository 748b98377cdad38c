/**
 * What the receiving floors share: `node:http`, a body, one verification, and batches. One batch is being committed at a time; what arrives
 * meanwhile makes the next. 204 leaves after the commit.
 */
import { createServer, type ServerResponse } from 'node:http';
import { announce } from '../announce.ts';
import { verifiedKey } from './verify.ts';

/** Inserts what is not there yet, durably. Key and body take turns. */
export type CommitBatch = (batch: readonly string[]) => Promise<unknown>;

export function receive(commit: CommitBatch): void {
  let batch: string[] = [];
  let waiting: ServerResponse[] = [];
  let busy = false;
  let scheduled = false;

  async function send(): Promise<void> {
    scheduled = false;
    if (busy || waiting.length === 0) return;
    busy = true;
    const answered = waiting;
    const committed = commit(batch);
    batch = [];
    waiting = [];
    await committed;
    busy = false;
    void send();
    for (const response of answered) response.writeHead(204, ['API-Version', '1']).end();
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const [first = Buffer.alloc(0)] = chunks;
      const body = chunks.length < 2 ? first : Buffer.concat(chunks);
      const key = verifiedKey(request.url ?? '', request.headers, body);
      if (key === undefined) {
        response.writeHead(400).end();
        return;
      }
      batch.push(key, body.toString('latin1'));
      waiting.push(response);
      if (scheduled) return;
      scheduled = true;
      setImmediate(send);
    });
  });
  announce(server);
}
