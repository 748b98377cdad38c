/**
 * The event log (§6): entries in (rev, id) order. Every commit locks the row of the store-wide revision until it is durable, so the order
 * of revisions is the order of visibility, and a tail skips nothing.
 * A filtered tail is bounded only near the head. One statement on the read lane finds the head, and reads if it is near; otherwise the tail
 * is read on the scan lane.
 * Each read from a position says itself if that is of a lost unit, because after a failover the connections come back in any order: what an
 * earlier read or another connection found out may be about another server.
 */
import type { Party } from '../../../model/fair-queue.ts';
import type { Filter } from '../../../model/filter.ts';
import type { ShapedFilter } from '../../filter-shape.ts';
import { PositionLost } from '../../follow-log.ts';
import { type LogPosition, type TailEntry, tailColumns, tailEntryOf } from '../../store.ts';
import { isLostSql } from '../commit/transaction.ts';
import { bindValues, liveInIndex, Parameters, passedOver } from '../compile/expressions.ts';
import { compileFilter, shapeOfFilter } from '../compile/filter.ts';
import { cutSql } from '../compile/page-statement.ts';
import type { Bindable, Call, Rows } from '../connection/connection.ts';
import type { ReadLane, ScanLane } from '../connection/lanes.ts';
import type { Layout } from '../schema/schema-layout.ts';

/** Distance from the head, in revisions, up to which a filtered tail is read on the read lane. */
const revisionsOnReadLaneMax = 256;

export type TailSources = {
  readonly read: Pick<ReadLane, 'send'>;
  readonly scan: Pick<ScanLane, 'read'>;
  readonly layout: Layout;
  /** Not quoted. */
  readonly schema: string;
};

/** @throws StoreUnavailable */
export async function readHead({ read, layout, schema }: TailSources): Promise<LogPosition> {
  const [row] = await read.send({ sql: headSql(layout, schema), values: [] });
  return row === undefined ? { rev: 0, id: '' } : { rev: Number(row[0]), id: String(row[1]) };
}

/** @throws PositionLost, StoreUnavailable */
export async function readStretch(
  { read, layout, schema }: TailSources,
  after: LogPosition,
  eventsMax: number,
): Promise<LogPosition> {
  const parameters = new Parameters(true);
  const rev = parameters.add(after.rev, 'bigint');
  const from = `(${rev}, ${parameters.add(after.id, 'text')})`;
  const events = `SELECT rev, id FROM ${layout.name} WHERE ${liveInIndex(schema)} AND (rev, id) > ${from} ORDER BY rev, id LIMIT ${eventsMax}`;
  const last = `SELECT rev, id FROM (${events}) s ORDER BY rev DESC, id DESC LIMIT 1`;
  const sql = `SELECT e.rev, e.id, l.lost FROM (SELECT ${isLostSql(schema, rev)} AS lost) l LEFT JOIN LATERAL (${last}) e ON TRUE`;
  const [row] = await read.send({ sql, values: bindValues(parameters.list, []) });
  if (row?.at(-1) === true) throw new PositionLost();
  return row === undefined || row[0] === null ? after : { rev: Number(row[0]), id: String(row[1]) };
}

/** @throws StoreUnavailable */
export async function readFormer({ read, layout }: TailSources, id: string): Promise<string | null> {
  const [row] = await read.send({ sql: `SELECT former FROM ${layout.name} WHERE id = $1`, values: [id] });
  return (row?.[0] ?? null) as string | null;
}

/** @throws StoreUnavailable, PositionLost if the query refuses lost positions */
export async function readTail(
  sources: TailSources,
  {
    filter,
    party,
    refusesLost = false,
    ...query
  }: Omit<TailQuery, 'filter'> & {
    readonly filter: Filter;
    readonly party?: Party | undefined;
    readonly refusesLost?: boolean | undefined;
  },
): Promise<readonly TailEntry[]> {
  const asked: TailQuery = { ...query, filter: shapeOfFilter(filter) };
  const { op } = asked.filter.shape;
  if (op === 'never' && !refusesLost) return [];
  const entriesOf = (rows: Rows): readonly TailEntry[] => {
    if (refusesLost && rows[0]?.at(-1) === true) throw new PositionLost();
    return rows.filter((cells) => cells[0] !== null).map(tailEntryOf);
  };
  if (op === 'always') return entriesOf(await sources.read.send(entriesCall(sources, asked, true)));
  const rows = await sources.read.send(nearCall(sources, asked));
  const head = Number(rows[0]?.[8] ?? 0);
  if (head - asked.after.rev > revisionsOnReadLaneMax && op !== 'never') {
    return entriesOf(await sources.scan.read(entriesCall(sources, asked, false), party));
  }
  return entriesOf(rows);
}

type TailQuery = {
  readonly after: LogPosition;
  readonly filter: ShapedFilter<Bindable>;
  readonly limit: number;
  /** Octets of documents after which the read ends; undefined: only `limit` ends it. */
  readonly bytesMax?: number | undefined;
  readonly until?: LogPosition | undefined;
};

function headSql(layout: Layout, schema: string): string {
  return `SELECT rev, id FROM ${layout.name} WHERE ${liveInIndex(schema)} ORDER BY rev DESC, id DESC LIMIT 1`;
}

/**
 * The entries, each with true if the unit of `after` is lost; one row without an entry if there is none.
 * @param bounded true for a statement that the index serves: prepared and steered
 */
function entriesCall(sources: TailSources, query: TailQuery, bounded: boolean): Call {
  const parameters = new Parameters(bounded);
  const after = parameters.add(query.after.rev, 'bigint');
  const entries = entriesSql(sources, query, { parameters, after, bounded });
  const sql = `SELECT ${joinedColumns}, l.lost FROM (SELECT ${isLostSql(sources.schema, after)} AS lost) l
    LEFT JOIN LATERAL (${entries}) e ON TRUE LIMIT ${query.limit}`;
  return { sql, values: bindValues(parameters.list, query.filter.values), prepared: bounded };
}

/** As `entriesCall`, each with the head's revision too; without entries also if the head is far. */
function nearCall(sources: TailSources, query: TailQuery): Call {
  const { layout, schema } = sources;
  const parameters = new Parameters(true);
  const after = parameters.add(query.after.rev, 'bigint');
  const far = parameters.add(query.after.rev + revisionsOnReadLaneMax, 'bigint');
  const near = { parameters, after, bounded: true, besides: `h.rev <= ${far}` };
  const sql = `SELECT ${joinedColumns}, h.rev, l.lost FROM (SELECT ${isLostSql(schema, after)} AS lost) l
    LEFT JOIN (${headSql(layout, schema)}) h ON TRUE
    LEFT JOIN LATERAL (${entriesSql(sources, query, near)}) e ON TRUE LIMIT ${query.limit}`;
  return { sql, values: bindValues(parameters.list, query.filter.values) };
}

const joinedColumns = tailColumns
  .split(', ')
  .map((name) => `e.${name}`)
  .join(', ');

type Written = {
  readonly parameters: Parameters;
  /** The revision of `after`, as a parameter. */
  readonly after: string;
  readonly bounded: boolean;
  readonly besides?: string;
};

function entriesSql(
  { layout, schema }: TailSources,
  { after, until, filter, limit, bytesMax }: TailQuery,
  { parameters, after: rev, bounded, besides }: Written,
): string {
  const conditions = [bounded ? liveInIndex(schema) : 'deleted_at IS NULL'];
  conditions.push(`(rev, id) > (${rev}, ${parameters.add(after.id, 'text')})`);
  if (until !== undefined) {
    conditions.push(
      `(rev, id) <= (${parameters.add(until.rev, 'bigint')}, ${parameters.add(until.id, 'text')})`,
    );
  }
  const level = { name: layout.name, schema, steered: bounded };
  if (filter.shape.op !== 'always') {
    const matching = compileFilter(filter.shape, parameters, level);
    conditions.push(bounded ? passedOver(matching) : matching);
  }
  if (besides !== undefined) conditions.push(besides);
  const entries = `SELECT ${tailColumns} FROM ${layout.name} WHERE ${conditions.join(' AND ')} ORDER BY rev, id LIMIT ${limit}`;
  return bytesMax === undefined ? entries : `SELECT ${tailColumns} FROM (${cutSql(entries, bytesMax)}) c`;
}
