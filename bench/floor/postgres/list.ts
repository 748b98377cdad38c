/**
 * Floor of a list of 20 by an index, asked for by GET with a query string or by QUERY with a JSON body: one pipelined
 * prepared SELECT through the expression index, the documents joined as they are stored.
 *
 * Usage: node bench/floor/postgres/list.ts URL SCHEMA
 */
import { createServer, type ServerResponse } from 'node:http';
import { parse } from 'node:querystring';
import { announce } from '../announce.ts';
import { connectFloor, query } from './client.ts';

const [url = '', schema = ''] = process.argv.slice(2);
const client = await connectFloor(url);
const price = `((doc::jsonb ->> 'price')::float8)`;

async function answer(response: ServerResponse, gte: number, limit: number): Promise<void> {
  const select = `SELECT doc FROM ${schema}.t WHERE ${price} >= $1 ORDER BY ${price}, id LIMIT ${limit}`;
  const rows = await query(client, `list-${limit}`, select, [gte]);
  const body = `{"items":[${rows.map(([doc]) => doc).join(',')}],"nextCursor":null}`;
  const bytes = Buffer.byteLength(body);
  const fields = ['Content-Type', 'application/json', 'Content-Length', String(bytes)];
  fields.push(
    'Cache-Control',
    'no-cache',
    'Vary',
    'Accept, Accept-Encoding, Authorization, X-API-Key, Cookie',
  );
  fields.push('API-Version', '1');
  response.writeHead(200, fields);
  response.end(body, bytes === body.length ? 'latin1' : 'utf8');
}

announce(
  createServer((request, response) => {
    const target = request.url ?? '';
    if (request.method === 'GET') {
      const asked = parse(target.slice(target.indexOf('?') + 1));
      void answer(response, Number(asked['price[gte]']), Number(asked.limit));
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const asked: { filter: { price: { gte: number } }; limit: number } = JSON.parse(
        Buffer.concat(chunks).toString(),
      );
      void answer(response, asked.filter.price.gte, asked.limit);
    });
  }),
);
