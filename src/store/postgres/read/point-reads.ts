/**
 * Reads of rows by id. All reads of a table in one turn of the event loop are one statement: with 64 at a time that is 76,000 reads per
 * second at half a core of this process, against 43,000 at a whole core for one pipelined statement each (two-core machine).
 */
import { OctetLine } from '../../../memory/program-memory.ts';
import { laterVersion, purgedCounter, versionText } from '../../revision.ts';
import { quoteName } from '../../sql-text.ts';
import { type ManyRows, type Row, rowColumns, rowOf } from '../../store.ts';
import { anyInTable } from '../compile/expressions.ts';
import { countersSql } from '../compile/page-statement.ts';
import type { ReadLane } from '../connection/lanes.ts';
import type { Layout, TableNumbers } from '../schema/schema-layout.ts';

/** Ids per statement, so that its reply does not delay the connection's other calls. */
const idsPerStatementMax = 256;

/** Octets of the documents of one statement by id, unless the first is longer, and of all such statements under way. */
const rowsBytesMax = 4 * 1024 * 1024;
const rowsAtOnceBytesMax = 8 * rowsBytesMax;
/** Few ids are read without the bound, which costs a sort. */
const idsUnboundedMax = 4;

export type PointReads = {
  /** Reads the row, softly deleted or not. @throws StoreUnavailable, TypeError for an unknown table */
  read(table: string, id: string): Promise<Row | undefined>;
  /** Reads the rows of these ids; undefined if they have more octets. @throws StoreUnavailable, TypeError for an unknown table */
  readMany(table: string, ids: readonly string[], bytesMax: number): Promise<ManyRows | undefined>;
};

export type PointReadsOf = {
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  /** Not quoted. */
  readonly schema: string;
  /** Called for each row that was read. A promise: the reader of the row goes on after it. */
  readonly nextRead?: (() => Promise<void> | undefined) | undefined;
};

export function createPointReads(
  lane: Pick<ReadLane, 'send'>,
  { layouts, numbers, schema, nextRead }: PointReadsOf,
): PointReads {
  const line = new OctetLine(rowsAtOnceBytesMax);
  const tables = new Map(
    layouts.map((layout) => {
      const many = manyReaderOf(lane, layout, { number: numbers.get(layout.table.name) ?? 0, schema });
      const one = readerOf(lane, layout, { schema, line, nextRead });
      return [layout.table.name, { one, many: createJointReads(many) }];
    }),
  );
  const readersOf = (table: string) => {
    const readers = tables.get(table);
    if (readers === undefined) throw new TypeError(`no table is named ${table}`);
    return readers;
  };
  // PostgreSQL's texts cannot contain U+0000: one such id would fail the others.
  return {
    read(table, id) {
      const { one } = readersOf(table);
      if (id.includes('\0')) return Promise.resolve(undefined);
      return one(id);
    },
    async readMany(table, ids, bytesMax) {
      const { many } = readersOf(table);
      return many(
        [...new Set(ids)].filter((id) => !id.includes('\0')),
        bytesMax,
      );
    },
  };
}

type ReadMany = (ids: readonly string[], bytesMax: number) => Promise<ManyRows | undefined>;

/** One statement for up to `idsPerStatementMax` ids after the other. A document beyond the bound is not sent. */
function manyReaderOf(
  lane: Pick<ReadLane, 'send'>,
  layout: Layout,
  { number, schema }: { readonly number: number; readonly schema: string },
): ReadMany {
  const bounded = rowColumns.replace('doc', 'CASE WHEN octets <= (SELECT $2::bigint) THEN doc END AS doc');
  const summed = `SELECT ${rowColumns}, (sum(octet_length(doc)) OVER (ORDER BY id))::bigint AS octets FROM ${layout.name} WHERE id = ANY ((SELECT $1::text[])::text[]) AND ${anyInTable(schema)}`;
  const sql = `SELECT f.*, c.rev FROM ${countersSql(schema, [number])} LEFT JOIN (SELECT ${bounded}, octets FROM (${summed}) AS found) f ON TRUE`;
  return async (ids, bytesMax) => {
    const rows = new Map<string, Row>();
    let left = bytesMax;
    let rev: unknown = 0;
    let start = 0;
    do {
      const some = ids.slice(start, start + idsPerStatementMax);
      let bytes = 0;
      for (const cells of await lane.send({ sql, values: [some, left] })) {
        rev = cells.at(-1);
        const id = cells[0] as string | null;
        if (id === null) continue;
        if (cells[docAt] === null) return undefined;
        bytes = Math.max(bytes, Number(cells.at(-2)));
        rows.set(id, rowOf(cells));
      }
      left -= bytes;
      start += idsPerStatementMax;
    } while (start < ids.length);
    return { rows, version: versionText(Number(rev)) };
  };
}

/** Place of the document among the columns of a row. */
const docAt = 2;

type Wanted = PromiseWithResolvers<ManyRows | undefined> & {
  readonly ids: readonly string[];
  readonly bytesMax: number;
};

/**
 * Reads together what was asked for in one turn of the event loop, in as few statements as its distinct ids allow. Reads that have more
 * octets together than one of them takes are made one by one.
 */
function createJointReads(read: ReadMany): ReadMany {
  let waiting: Wanted[] = [];

  async function readJointly(joint: readonly Wanted[], ids: ReadonlySet<string>): Promise<void> {
    try {
      const least = Math.min(...joint.map(({ bytesMax }) => bytesMax));
      const found = await read([...ids], least);
      if (found !== undefined) for (const wanted of joint) wanted.resolve(rowsOfIds(found, wanted.ids));
      else if (joint.length === 1) joint[0]?.resolve(undefined);
      else await Promise.all(joint.map((wanted) => readJointly([wanted], new Set(wanted.ids))));
    } catch (error) {
      for (const { reject } of joint) reject(error);
    }
  }

  function flush(): void {
    let joint: Wanted[] = [];
    let ids = new Set<string>();
    for (const wanted of waiting) {
      const fresh = wanted.ids.filter((id) => !ids.has(id));
      if (joint.length > 0 && ids.size + fresh.length > idsPerStatementMax) {
        void readJointly(joint, ids);
        [joint, ids] = [[], new Set()];
      }
      joint.push(wanted);
      for (const id of wanted.ids) ids.add(id);
    }
    waiting = [];
    void readJointly(joint, ids);
  }

  return (ids, bytesMax) => {
    if (waiting.length === 0) setImmediate(flush);
    const wanted = { ids, bytesMax, ...Promise.withResolvers<ManyRows | undefined>() };
    waiting.push(wanted);
    return wanted.promise;
  };
}

function rowsOfIds({ rows, version }: ManyRows, ids: readonly string[]): ManyRows {
  const own = new Map<string, Row>();
  for (const id of ids) {
    const row = rows.get(id);
    if (row !== undefined) own.set(id, row);
  }
  return { rows: own, version };
}

type ReaderOf = Pick<PointReadsOf, 'schema' | 'nextRead'> & { readonly line: OctetLine };

/**
 * A statement for many ids returns documents up to a bound, and the next statement reads the rest. Without the bound, 1,000 requests for 100
 * documents of 900 KB ended a program of 512 MiB. The store sends the next statement after it has passed on all rows of the one before.
 */
function readerOf(
  lane: Pick<ReadLane, 'send'>,
  layout: Layout,
  { schema, line, nextRead }: ReaderOf,
): (id: string) => Promise<Row | undefined> {
  const found = `FROM ${layout.name} WHERE id = ANY ((SELECT $1::text[])::text[]) AND ${anyInTable(schema)}`;
  const sql = `SELECT ${rowColumns} ${found}`;
  const octets = 'sum(octet_length(doc)) OVER (ORDER BY id)';
  const bounded = rowColumns.replace(
    'doc',
    `CASE WHEN octets <= ${rowsBytesMax} OR octets = octet_length(doc) THEN doc END AS doc`,
  );
  const boundedSql = `SELECT ${bounded} FROM (SELECT ${rowColumns}, ${octets} AS octets ${found}) AS found`;

  /** @returns the ids whose documents were beyond the bound */
  async function readSome(ids: readonly string[], settle: Settle<string, Row>): Promise<readonly string[]> {
    const beyond: string[] = [];
    const rows = await lane.send({ sql: ids.length > idsUnboundedMax ? boundedSql : sql, values: [ids] });
    for (const cells of rows) {
      if (cells[docAt] === null) beyond.push(cells[0] as string);
      else {
        // One answer has the rows of up to 256 requests, which would all go on with it.
        const turn = nextRead?.();
        if (turn !== undefined) await turn;
        settle(cells[0] as string, rowOf(cells));
      }
    }
    return beyond;
  }

  return createGather(async (ids: readonly string[], settle) => {
    for (let left = ids; left.length > 0; ) {
      const asked = left;
      left = await line.run(rowsBytesMax, () => readSome(asked, settle));
    }
    return new Map();
  }, idsPerStatementMax);
}

/** Answers one of the keys before the others. */
type Settle<Key, Answer> = (key: Key, answer: Answer) => void;

/** Fetches distinct keys; the result lacks those not found, and those that were settled before. */
type Ask<Key, Answer> = (
  keys: readonly Key[],
  settle: Settle<Key, Answer>,
) => Promise<ReadonlyMap<Key, Answer>>;

/**
 * Batches the requests of one turn of the event loop into few statements: a statement costs client and server many times an additional id.
 * Requests for the same key share the result. Nothing is sent before the turn ends, so a result includes everything committed before the
 * request.
 * @param keysMax keys per statement
 */
export function createGather<Key, Answer>(
  ask: Ask<Key, Answer>,
  keysMax: number,
): (key: Key) => Promise<Answer | undefined> {
  let gathered = new Map<Key, PromiseWithResolvers<Answer | undefined>>();

  function flush(): void {
    const asked = gathered;
    gathered = new Map();
    const keys = [...asked.keys()];
    for (let start = 0; start < keys.length; start += keysMax) {
      const some = keys.length <= keysMax ? keys : keys.slice(start, start + keysMax);
      const settle = (key: Key, answer: Answer): void => {
        asked.get(key)?.resolve(answer);
        // The promise would keep the answer until the last of the keys has its own.
        asked.delete(key);
      };
      ask(some, settle).then(
        (answers) => {
          for (const key of some) asked.get(key)?.resolve(answers.get(key));
        },
        (error: unknown) => {
          for (const key of some) asked.get(key)?.reject(error);
        },
      );
    }
  }

  return (key) => {
    const shared = gathered.get(key);
    if (shared !== undefined) return shared.promise;
    if (gathered.size === 0) setImmediate(flush);
    const own = Promise.withResolvers<Answer | undefined>();
    gathered.set(key, own);
    return own.promise;
  };
}

const tablesPerStatementMax = 1000;

export type Versions = {
  /** @throws StoreUnavailable, TypeError for an unknown table */
  version(table: string): Promise<string>;
  /** The latest of the versions of the tables. */
  latest(tables: readonly string[]): Promise<string>;
  /** The greatest revision of the events that were purged; 0: none. */
  purgedTo(): Promise<number>;
};

/** Reads versions of tables, all of one turn of the event loop in one statement. @param schema not quoted */
export function createVersions(
  lane: Pick<ReadLane, 'send'>,
  numbers: TableNumbers,
  schema: string,
): Versions {
  const sql = `SELECT n, rev FROM ${quoteName(schema)}.comity_counters WHERE n = ANY ((SELECT $1::int[])::int[])`;
  const revOf = createGather(async (asked: readonly number[]) => {
    const revs = new Map<number, number>();
    for (const [n, rev] of await lane.send({ sql, values: [asked] })) revs.set(Number(n), Number(rev));
    return revs;
  }, tablesPerStatementMax);
  const version = async (table: string): Promise<string> => {
    const number = numbers.get(table);
    if (number === undefined) throw new TypeError(`no table is named ${table}`);
    return versionText((await revOf(number)) ?? 0);
  };
  return {
    version,
    latest: async (tables) => (await Promise.all(tables.map(version))).reduce(laterVersion),
    purgedTo: async () => (await revOf(purgedCounter)) ?? 0,
  };
}
