/**
 * Floor of a read by id: `node:http`, one prepared SELECT, the header fields of Comity's answer.
 *
 * Usage: node bench/floor/read.ts DATABASE
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
    const bytes = Buffer.byteLength(doc);
    const fields = validatorFields(rev, dateText(updatedAtMs));
    fields.push('Content-Type', 'application/json', 'Content-Length', String(bytes));
    response.writeHead(200, fields);
    response.end(doc, bytes === doc.length ? 'latin1' : 'utf8');
  }),
);
