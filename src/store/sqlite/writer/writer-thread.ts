/** The writer thread: the only connection that writes while the store is open. It handles one request at a time. */
import { dirname } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { connect } from '../connection.ts';
import { createErasure } from '../erasure.ts';
import { refuseFullDisk } from '../integrity.ts';
import { faultOf, messageOf } from '../sqlite-failure.ts';
import { layoutsOf } from '../table-layout.ts';
import { prepareStatements } from './statements.ts';
import { commitBatch } from './transaction.ts';
import type { Reply, Request, WriterData } from './writer-messages.ts';

function run(data: WriterData): void {
  const port = parentPort;
  if (port === null) throw new Error('writer-thread.ts runs only in a worker thread');
  const database = connect(data.path, 'writer', data.connection);
  const erasure = createErasure(database, data.logTruncateMs, data.connection.busyTimeoutMs);
  const layouts = layoutsOf(data.tables);
  const statements = prepareStatements(database, layouts, data.numbers);
  const tablesByName = new Map(statements.tables.map((table) => [table.layout.table.name, table]));
  let rev = Number(database.prepare('SELECT rev FROM comity_counters WHERE n = 0').get()?.rev);

  function purge(request: Request & { kind: 'purge' }): Reply {
    const table = tablesByName.get(request.table);
    if (table === undefined) throw new TypeError(`no table is named ${request.table}`);
    let rows = 0;
    database.exec('BEGIN IMMEDIATE');
    for (const id of request.ids) rows += Number(table.removeOld.run(id, request.updatedBefore).changes);
    if (rows > 0) {
      rev += 1;
      statements.setCounter.run(rev, 0);
      statements.setCounter.run(rev, table.number);
    }
    database.exec('COMMIT');
    return { kind: 'purged', rows };
  }

  function answer(request: Request): Reply {
    switch (request.kind) {
      case 'commit': {
        const outcome = commitBatch(database, statements, request.units, request.cells, rev);
        rev = outcome.lastRev;
        return {
          kind: 'committed',
          firstRev: outcome.firstRev,
          refusals: outcome.refusals,
        };
      }
      case 'purge':
        return purge(request);
      case 'probe':
        refuseFullDisk(dirname(data.path));
        database.exec('UPDATE comity_counters SET rev = rev WHERE n = 0');
        return { kind: 'probed' };
      case 'close':
        erasure.stop();
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
        database.close();
        return { kind: 'closed' };
    }
  }

  port.on('message', (request: Request) => {
    let reply: Reply;
    try {
      reply = answer(request);
      if (request.kind !== 'close') erasure.wrote();
    } catch (error) {
      if (database.isOpen && database.isTransaction) database.exec('ROLLBACK');
      // A commit that failed during its fsync may have left revisions on disk: they are not used again.
      if (request.kind === 'commit') rev += request.units;
      reply = { kind: 'failed', message: messageOf(error), fault: faultOf(error) };
    }
    port.postMessage(reply);
    if (request.kind === 'close') port.close();
  });
}

run(workerData as WriterData);
