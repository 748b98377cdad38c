/**
 * Floor of a durable create with its event: what arrives while one transaction is under way makes the next, which is two
 * multi-row inserts sent in one flight with their BEGIN and COMMIT. An answer leaves after its commit.
 *
 * Usage: node bench/floor/postgres/create.ts URL SCHEMA
 */
import { createServer, type ServerResponse } from 'node:http';
import { productId } from '../../product.ts';
import { announce } from '../announce.ts';
import { connectFloor, query } from './client.ts';

type Waiting = { readonly response: ServerResponse; readonly id: string; readonly doc: string };

const [url = '', schema = ''] = process.argv.slice(2);
const client = await connectFloor(url);
const pathBytes = '/api/v1/products/'.length;
/** Identifiers made here stand above every seeded one. */
const firstIndex = 2 ** 36;
const insertRows = `INSERT INTO ${schema}.t SELECT id, rev, doc, NULL, $4::bigint, $4::bigint, NULL
  FROM unnest($1::text[], $2::bigint[], $3::text[]) AS row (id, rev, doc)`;
const insertEvents = `INSERT INTO ${schema}.events SELECT rev, id, 'products.created', doc, $4::bigint
  FROM unnest($1::bigint[], $2::text[], $3::text[]) AS event (rev, id, doc)`;
let rev = 2 ** 36;
let made = 0;
let gathered: Waiting[] = [];
let busy = false;
let scheduled = false;

async function send(): Promise<void> {
  scheduled = false;
  if (busy || gathered.length === 0) return;
  busy = true;
  const batch = gathered;
  gathered = [];
  const firstRev = rev + 1;
  rev += batch.length;
  const ids = batch.map(({ id }) => id);
  const docs = batch.map(({ doc }) => doc);
  const revs = batch.map((_, place) => firstRev + place);
  const at = Date.now();
  await Promise.all([
    query(client, 'begin', 'BEGIN', []),
    query(client, 'rows', insertRows, [ids, revs, docs, at]),
    query(client, 'events', insertEvents, [revs, ids.map((id) => `evt_${id}`), docs, at]),
    query(client, 'commit', 'COMMIT', []),
  ]);
  busy = false;
  void send();
  for (const [place, { response, id, doc }] of batch.entries()) {
    const bytes = Buffer.byteLength(doc);
    const fields = ['Content-Type', 'application/json', 'Content-Length', String(bytes)];
    fields.push('ETag', `"${firstRev + place}"`, 'Location', `/api/v1/products/${id}`);
    fields.push('Cache-Control', 'no-cache', 'API-Version', '1');
    response.writeHead(201, fields);
    response.end(doc, bytes === doc.length ? 'latin1' : 'utf8');
  }
}

async function read(path: string, response: ServerResponse): Promise<void> {
  const rows = await query(client, 'read', `SELECT doc FROM ${schema}.t WHERE id = $1`, [
    path.slice(pathBytes),
  ]);
  response.writeHead(rows.length === 0 ? 404 : 200).end(String(rows[0]?.[0] ?? ''));
}

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    void read(request.url ?? '', response);
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
announce(server);
