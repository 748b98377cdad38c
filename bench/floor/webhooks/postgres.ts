/**
 * The floor of durable sending over PostgreSQL: each turn is one transaction in one flight, rows in arrays, claims with `SKIP LOCKED`.
 *
 * Usage: node bench/floor/webhooks/postgres.ts URL SCHEMA
 */
import { answerQuestions } from '../../webhooks/answer-questions.ts';
import { eventId, eventText } from '../../webhooks/sent-events.ts';
import { connectFloor, query } from '../postgres/client.ts';
import type { SendQuestion } from './bare.ts';
import { type Claimed, type ClaimTables, sendClaimed } from './claims.ts';

const [url = '', schema = ''] = process.argv.slice(2);
const client = await connectFloor(url);
const claimMs = 30_000;
const rowsPerStatement = 5000;
let filled = 0;

await client.query(`
  CREATE SCHEMA ${schema};
  CREATE TABLE ${schema}.events (id text COLLATE "C" PRIMARY KEY, doc text NOT NULL);
  CREATE TABLE ${schema}.deliveries (id text COLLATE "C" PRIMARY KEY, event text COLLATE "C" NOT NULL, status text NOT NULL,
    due_at bigint, attempts integer NOT NULL);
  CREATE INDEX ON ${schema}.deliveries (due_at, id) WHERE due_at IS NOT NULL;
  CREATE TABLE ${schema}.attempts (delivery text COLLATE "C", number integer, status integer, started_at bigint, ended_at bigint,
    PRIMARY KEY (delivery, number));`);

const settle = `UPDATE ${schema}.deliveries SET status = 'delivered', due_at = NULL, attempts = attempts + 1 WHERE id = ANY($1::text[])`;
const log = `INSERT INTO ${schema}.attempts SELECT id, 1, status, started, ended
  FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[]) AS attempt (id, status, started, ended)`;
const claim = `WITH due AS MATERIALIZED (SELECT id FROM ${schema}.deliveries WHERE due_at <= $1 ORDER BY due_at, id LIMIT $3 FOR UPDATE SKIP LOCKED)
  UPDATE ${schema}.deliveries d SET due_at = $2 FROM due, ${schema}.events e WHERE d.id = due.id AND e.id = d.event RETURNING d.id, e.id, e.doc`;

const tables: ClaimTables = {
  async fill(count) {
    for (let added = 0; added < count; added += rowsPerStatement) {
      const many = Math.min(rowsPerStatement, count - added);
      const ids = Array.from({ length: many }, (_, place) => eventId(filled + place));
      const docs = Array.from({ length: many }, (_, place) => eventText(filled + place));
      filled += many;
      await query(client, '', `INSERT INTO ${schema}.events SELECT * FROM unnest($1::text[], $2::text[])`, [
        ids,
        docs,
      ]);
      await query(
        client,
        '',
        `INSERT INTO ${schema}.deliveries SELECT 'dlv_' || id, id, 'pending', 0, 0 FROM unnest($1::text[]) AS event (id)`,
        [ids],
      );
    }
    await client.query(`ANALYZE ${schema}.deliveries; ANALYZE ${schema}.events`);
  },
  async turn(ended, wanted) {
    const ids = ended.map(({ id }) => id);
    const now = Date.now();
    const [, , , rows] = await Promise.all([
      query(client, 'begin', 'BEGIN', []),
      query(client, 'settle', settle, [ids]),
      query(client, 'log', log, [
        ids,
        ended.map(({ status }) => status),
        ended.map(({ startedMs }) => startedMs),
        ended.map(({ endedMs }) => endedMs),
      ]),
      query(client, 'claim', claim, [now, now + claimMs, wanted]),
      query(client, 'commit', 'COMMIT', []),
    ]);
    return rows.map(
      ([id, event, doc]): Claimed => ({ id: String(id), eventId: String(event), doc: String(doc) }),
    );
  },
};

answerQuestions<SendQuestion>((question) => sendClaimed(tables, question));
