/**
 * Floor of a conditional read: the SELECT of `read.ts`, one comparison with If-None-Match, 304.
 *
 * Usage: node bench/floor/not-modified.ts DATABASE
 */
import { createServer } from 'node:http';
import { announce } from './announce.ts';
import { createDateText, createLookup, validatorFields } from './answer.ts';
import { openFloorStore } from './store.ts';

const database = openFloorStore(process.argv[2] ?? 'floor.db');
const lookup = createLookup(database);
const dateText = createDateText();

announce(
  createServer((request, response) => {
    const row = lookup(request.url ?? '');
    if (row === undefined) {
      response.writeHead(404, ['Content-Length', '0']).end();
      return;
    }
    const [rev, doc, updatedAtMs] = row;
    const fields = validatorFields(rev, dateText(updatedAtMs));
    if (request.headers['if-none-match'] === `"${rev}"`) {
      response.writeHead(304, fields).end();
      return;
    }
    fields.push('Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(doc)));
    response.writeHead(200, fields).end(doc);
  }),
);
