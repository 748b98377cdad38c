/**
 * The floor of durable sending over SQLite: a writer thread does each turn as one transaction (WAL, `synchronous=FULL`).
 *
 * Usage: node bench/floor/webhooks/sqlite.ts DATABASE
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { answerQuestions } from '../../webhooks/answer-questions.ts';
import type { SendQuestion } from './bare.ts';
import { type Claimed, type ClaimTables, sendClaimed } from './claims.ts';

const writer = new Worker(new URL('./sqlite-writer.ts', import.meta.url), { workerData: process.argv[2] });

async function ask<Answer>(question: object): Promise<Answer> {
  writer.postMessage(question);
  const [answer] = await once(writer, 'message');
  return answer as Answer;
}

const tables: ClaimTables = {
  fill: (count) => ask<void>({ fill: count }),
  turn: (ended, wanted) => ask<readonly Claimed[]>({ ended, wanted }),
};

answerQuestions<SendQuestion>((question) => sendClaimed(tables, question));
