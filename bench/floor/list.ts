/**
 * Floor of a list of 20 by an index, asked for by GET with a query string or by QUERY with a JSON body: one SELECT
 * through the expression index, the documents joined as they are stored.
 *
 * Usage: node bench/floor/list.ts DATABASE
 */
import { createServer, type ServerResponse } from 'node:http';
import { parse } from 'node:querystring';
import { announce } from './announce.ts';
import { createTurnReader } from './answer.ts';
import { openFloorStore } from './store.ts';

const database = openFloorStore(process.argv[2] ?? 'floor.db');
const enterTurn = createTurnReader(database);
// SQLite would compile a statement with a bare `LIMIT ?` again for each request.
const statement = database.prepare(
  `SELECT doc FROM t WHERE json_extract(doc, '$.price') >= ? ORDER BY json_extract(doc, '$.price'), id LIMIT +?`,
);
statement.setReturnArrays(true);

function answer(response: ServerResponse, gte: number, limit: number): void {
  enterTurn();
  const rows = statement.all(gte, limit) as unknown as readonly (readonly [string])[];
  const body = `{"items":[${rows.map(([doc]) => doc).join(',')}],"nextCursor":null}`;
  const bytes = Buffer.byteLength(body);
  const fields = [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(bytes),
    'Cache-Control',
    'no-cache',
  ];
  fields.push('Vary', 'Accept, Accept-Encoding, Authorization, X-API-Key, Cookie', 'API-Version', '1');
  response.writeHead(200, fields);
  response.end(body, bytes === body.length ? 'latin1' : 'utf8');
}

announce(
  createServer((request, response) => {
    const target = request.url ?? '';
    if (request.method === 'GET') {
      const query = parse(target.slice(target.indexOf('?') + 1));
      answer(response, Number(query['price[gte]']), Number(query.limit));
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const query: { filter: { price: { gte: number } }; limit: number } = JSON.parse(
        Buffer.concat(chunks).toString(),
      );
      answer(response, query.filter.price.gte, query.limit);
    });
  }),
);
