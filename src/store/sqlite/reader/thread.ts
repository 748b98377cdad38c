/** A reader thread: runs statements whose cost grows with a table, one at a time, each in a snapshot of its own. */
import type { StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { lowerOwnPriority } from '../../thread-priority.ts';
import type { Cells } from '../cells.ts';
import { connect } from '../connection.ts';
import { isMistake, messageOf } from '../failure.ts';
import { StatementCache } from '../statement-cache.ts';
import { installDeadline } from './deadline.ts';
import type { ReaderData, ReadReply, ReadRequest } from './wire.ts';

const statementsKeptMax = 128;

function run(data: ReaderData): void {
  const port = parentPort;
  if (port === null) throw new Error('a reader runs as a thread');
  const database = connect(data.path, 'reader', data.connection);
  const deadline = installDeadline(database, data.scanTimeoutMs);
  const statements = new StatementCache(database, statementsKeptMax);
  const version: StatementSync = statements.prepare('SELECT rev FROM comity_counters WHERE n = ?');

  function answer(request: ReadRequest): ReadReply {
    database.exec('BEGIN');
    try {
      deadline.start();
      const rows = statements.prepare(request.sql).all(...request.parameters) as unknown as readonly Cells[];
      const found = version.get(request.tableNumber) as unknown as readonly number[] | undefined;
      return { kind: 'rows', rows, version: found?.[0] ?? 0 };
    } catch (error) {
      if (deadline.passed) return { kind: 'late' };
      return { kind: 'failed', message: messageOf(error), mistake: isMistake(error) };
    } finally {
      if (database.isTransaction) database.exec('COMMIT');
    }
  }

  port.on('message', (request: ReadRequest | 'close') => {
    if (request === 'close') {
      database.close();
      port.close();
    } else port.postMessage(answer(request));
  });
}

lowerOwnPriority();
run(workerData as ReaderData);
