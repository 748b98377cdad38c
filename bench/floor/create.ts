/**
 * Floor of a durable create with its event. The main thread parses the body, makes the document and gathers what one
 * turn of the event loop brings; a writer thread commits each batch as one transaction (WAL, `synchronous=FULL`); an
 * answer leaves after its commit. One batch is in flight at a time: what arrives meanwhile makes the next, larger
 * one, so that the batch size follows the cost of a commit.
 *
 * Usage: node bench/floor/create.ts DATABASE
 */
import { createServer, type ServerResponse } from 'node:http';
import { Worker } from 'node:worker_threads';
import { productId } from '../product.ts';
import { announce } from './announce.ts';
import { createLookup } from './answer.ts';
import { openFloorStore } from './store.ts';

type Waiting = { readonly response: ServerResponse; readonly id: string; readonly doc: string };

const file = process.argv[2] ?? 'floor.db';
const lookup = createLookup(openFloorStore(file));
const writer = new Worker(new URL('./create-writer.ts', import.meta.url), { workerData: file });
/** Identifiers made here stand above every seeded one. */
const firstIndex = 2 ** 36;
let made = 0;
let gathered: Waiting[] = [];
let inFlight: readonly Waiting[] = [];
let scheduled = false;

function send(): void {
  scheduled = false;
  if (inFlight.length > 0 || gathered.length === 0) return;
  inFlight = gathered;
  gathered = [];
  writer.postMessage(inFlight.flatMap(({ id, doc }) => [id, doc]));
}

writer.on('message', (firstRev: number) => {
  const settled = inFlight;
  inFlight = [];
  send();
  settled.forEach(({ response, id, doc }, place) => {
    const bytes = Buffer.byteLength(doc);
    const fields = [
      'Content-Type',
      'application/json',
      'Content-Length',
      String(bytes),
      'ETag',
      `"${firstRev + place}"`,
    ];
    fields.push('Location', `/api/v1/products/${id}`, 'Cache-Control', 'no-cache', 'API-Version', '1');
    response.writeHead(201, fields);
    response.end(doc, bytes === doc.length ? 'latin1' : 'utf8');
  });
});

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const row = lookup(request.url ?? '');
    response.writeHead(row === undefined ? 404 : 200).end(row?.[1] ?? '');
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const sent: Record<string, unknown> = JSON.parse(Buffer.concat(chunks).toString());
    made += 1;
    const id = productId(firstIndex + made);
    const at = new Date().toISOString();
    gathered.push({ response, id, doc: JSON.stringify({ id, ...sent, createdAt: at, updatedAt: at }) });
    if (scheduled) return;
    scheduled = true;
    setImmediate(send);
  });
});
writer.once('online', () => announce(server));
