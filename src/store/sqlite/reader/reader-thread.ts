/** A reader thread: runs statements whose cost grows with a table, one at a time, each in its own snapshot. */
import type { StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { memoryBounds } from '../../../memory/bounds.ts';
import { OctetTaking } from '../../page-of-rows.ts';
import { lowerOwnPriority } from '../../worker-file.ts';
import { type Cells, connect, faultOf, isMistake, messageOf, StatementCache } from '../connection.ts';
import { installDeadline } from './deadline.ts';
import type { Probe, ReaderData, ReadReply, ReadRequest, Statement } from './pool.ts';

const statementOctetsMax = memoryBounds.sqliteStatements.octets / 4;

function run(data: ReaderData): void {
  const port = parentPort;
  if (port === null) throw new Error('reader-thread.ts runs only in a worker thread');
  const database = connect(data.path, 'reader', data.connection);
  const deadline = installDeadline(database, data.scanTimeoutMs, data.cancelled);
  const statements = new StatementCache(database, statementOctetsMax);
  const version: StatementSync = statements.prepare('SELECT rev FROM comity_counters WHERE n = ?');

  function revisionOf(tableNumber: number): number {
    const found = version.get(tableNumber) as unknown as readonly number[] | undefined;
    return found?.[0] ?? 0;
  }

  function answer(request: ReadRequest): ReadReply {
    database.exec('BEGIN');
    try {
      deadline.start();
      const found = rowsOf(statements, request);
      const { tableNumber, relatedNumbers = [] } = request;
      const revisions = [tableNumber, ...relatedNumbers].map(revisionOf);
      return { kind: 'rows', ...found, version: Math.max(...revisions) };
    } catch (error) {
      for (const { sql } of statementsIn(request)) statements.drop(sql);
      if (deadline.passed) return { kind: 'late' };
      return {
        kind: 'failed',
        message: messageOf(error),
        mistake: isMistake(error),
        fault: faultOf(error),
      };
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

type Found = Pick<Extract<ReadReply, { kind: 'rows' }>, 'rows' | 'isCut' | 'isBarred'>;

function rowsOf(statements: StatementCache, request: ReadRequest): Found {
  const { sql, parameters, rest = [], octets, probe } = request;
  const chosen = probe === undefined ? undefined : choose(statements, probe);
  if (typeof chosen === 'string') return { rows: [], isCut: false, isBarred: chosen === 'barred' };
  if (octets === undefined) {
    const rows = statements.prepare(sql).all(...parameters) as unknown as readonly Cells[];
    return { rows, isCut: false, isBarred: false };
  }
  const taking = new OctetTaking(octets);
  for (const each of chosen ?? [{ sql, parameters }, ...rest]) {
    if (taking.isOver) break;
    taking.takeFrom(statements.prepare(each.sql).iterate(...each.parameters) as unknown as Iterable<Cells>);
  }
  return { rows: taking.rows as readonly Cells[], isCut: taking.isCut, isBarred: false };
}

/** @returns undefined for the statements of the request */
function choose(
  statements: StatementCache,
  probe: Probe,
): readonly Statement[] | 'barred' | 'none' | undefined {
  const firstOf = ({ sql, parameters }: Statement): Cells =>
    statements.prepare(sql).get(...parameters) as unknown as Cells;
  for (const listing of probe.listings) {
    const [count, isBarred, list] = firstOf(listing);
    if (isBarred === 1) return 'barred';
    if (count === 0) return 'none';
    if (Number(count) > listing.listMax) continue;
    return listing.statements.map(({ sql, parameters, listAt }) => ({
      ...{ sql, parameters: parameters.with(listAt, String(list)) },
    }));
  }
  return Number(firstOf(probe.count)[0]) > probe.countMax ? probe.beyond : undefined;
}

function statementsIn({ rest = [], probe, ...first }: ReadRequest): readonly Pick<Statement, 'sql'>[] {
  if (probe === undefined) return [first, ...rest];
  const listings = probe.listings.flatMap((listing) => [listing, ...listing.statements]);
  return [first, ...rest, ...listings, probe.count, ...probe.beyond];
}

lowerOwnPriority();
run(workerData as ReaderData);
