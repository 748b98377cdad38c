/** The writer thread of `sqlite.ts`. */
import { parentPort, workerData } from 'node:worker_threads';
import { eventId, eventText } from '../../webhooks/sent-events.ts';
import { openFloorStore } from '../store.ts';
import type { Claimed, Ended } from './claims.ts';

type Question = { readonly fill: number } | { readonly ended: readonly Ended[]; readonly wanted: number };

const claimMs = 30_000;
const database = openFloorStore(String(workerData));
database.exec(`
  CREATE TABLE events (id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE deliveries (id TEXT PRIMARY KEY, event TEXT NOT NULL, status TEXT NOT NULL, due_at INTEGER, attempts INTEGER NOT NULL);
  CREATE INDEX deliveries_due ON deliveries (due_at, id) WHERE due_at IS NOT NULL;
  CREATE TABLE attempts (delivery TEXT NOT NULL, number INTEGER NOT NULL, status INTEGER, started_at INTEGER, ended_at INTEGER,
    PRIMARY KEY (delivery, number)) WITHOUT ROWID;
`);
const begin = database.prepare('BEGIN IMMEDIATE');
const commit = database.prepare('COMMIT');
const addEvent = database.prepare('INSERT INTO events VALUES (?, ?)');
const addDelivery = database.prepare("INSERT INTO deliveries VALUES (?, ?, 'pending', 0, 0)");
const settle = database.prepare(
  "UPDATE deliveries SET status = 'delivered', due_at = NULL, attempts = attempts + 1 WHERE id = ?",
);
const log = database.prepare('INSERT INTO attempts VALUES (?, 1, ?, ?, ?)');
const claim = database.prepare(
  `SELECT d.id, d.event AS eventId, e.doc FROM deliveries d JOIN events e ON e.id = d.event
   WHERE due_at <= ? ORDER BY due_at, d.id LIMIT ?`,
);
const hold = database.prepare('UPDATE deliveries SET due_at = ? WHERE id = ?');
let filled = 0;

function fill(count: number): void {
  for (let added = 0; added < count; added += 1) {
    addEvent.run(eventId(filled), eventText(filled));
    addDelivery.run(`dlv_${eventId(filled)}`, eventId(filled));
    filled += 1;
  }
}

function turn(ended: readonly Ended[], wanted: number): readonly Claimed[] {
  for (const { id, status, startedMs, endedMs } of ended) {
    settle.run(id);
    log.run(id, status, startedMs, endedMs);
  }
  if (wanted === 0) return [];
  const now = Date.now();
  const claimed = claim.all(now, wanted) as Claimed[];
  for (const { id } of claimed) hold.run(now + claimMs, id);
  return claimed;
}

parentPort?.on('message', (question: Question) => {
  begin.run();
  const answer = 'fill' in question ? fill(question.fill) : turn(question.ended, question.wanted);
  commit.run();
  parentPort?.postMessage(answer);
});
