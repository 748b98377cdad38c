/**
 * Floor of a read by id, and of one that ends in 304: `node:http`, one pipelined prepared SELECT, the header fields of
 * Comity's answer.
 *
 * Usage: node bench/floor/postgres/read.ts URL SCHEMA
 */
import { createServer } from 'node:http';
import { announce } from '../announce.ts';
import { createDateText, validatorFields } from '../answer.ts';
import { connectFloor, query } from './client.ts';

const [url = '', schema = ''] = process.argv.slice(2);
const client = await connectFloor(url);
const dateText = createDateText();
const pathBytes = '/api/v1/products/'.length;
const select = `SELECT rev, doc, updated_at FROM ${schema}.t WHERE id = $1`;

announce(
  createServer(async (request, response) => {
    const [row] = await query(client, 'read', select, [request.url?.slice(pathBytes)]);
    if (row === undefined) {
      response.writeHead(404, ['Content-Length', '0']).end();
      return;
    }
    const [rev, doc, updatedAtMs] = row as [number, string, number];
    const fields = validatorFields(rev, dateText(updatedAtMs));
    if (request.headers['if-none-match'] === `"${rev}"`) {
      response.writeHead(304, fields).end();
      return;
    }
    const bytes = Buffer.byteLength(doc);
    fields.push('Content-Type', 'application/json', 'Content-Length', String(bytes));
    response.writeHead(200, fields);
    response.end(doc, bytes === doc.length ? 'latin1' : 'utf8');
  }),
);
