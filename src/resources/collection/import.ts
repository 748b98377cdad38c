/**
 * POST {collection}/import (§4.19.9): CSV, NDJSON or a JSON array, written while it arrives. The records that the content is cut into become items
 * of bulk requests, a batch at a time, each a unit of its own; the answer counts them and lists the first faults with their lines. With
 * `atomic`, all records are one unit. A dry run does the same over a store whose units are judged and never made.
 */
import { answers } from '../../http/conduct/answers.ts';
import { type ArrivingContent, ContentFailed } from '../../http/message.ts';
import { codeOf, messageOf, type Problem } from '../../http/problem.ts';
import { parseCsvRecord } from '../../http/syntax/csv.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import { decodeText } from '../../kernel/content/content-shape.ts';
import type {
  Ask,
  Operation,
  Proposal,
  Receiving,
  Result,
  Standing,
  Understood,
} from '../../kernel/resource.ts';
import { bulkBound, workRules } from '../../memory/work-rules.ts';
import { watchCredential } from '../../model/principal.ts';
import { StoreUnavailable } from '../../store/store.ts';
import type { BulkItem } from '../document/bulk-content.ts';
import { closingsFor } from '../document/closed-members.ts';
import {
  type Column,
  type Header,
  type ImportReading,
  type ReadRecord,
  type Resolved,
  readHeader,
  readRecords,
} from '../document/import-records.ts';
import {
  type CutBounds,
  type CutFault,
  type CutRecord,
  type RecordBatch,
  RecordCutter,
} from '../document/record-cutter.ts';
import { mayWrite, withCompanions, writeItems, writeTogether } from './bulk.ts';
import { type Alone, createQueue, type ItemResult, madeReport } from './bulk-writes.ts';
import {
  columnNames,
  columnsMax,
  type ImportOptions,
  importTypes,
  readImportOptions,
} from './import-options.ts';
import { findReferences } from './import-references.ts';
import { Trial } from './import-trial.ts';
import { openStanding, type Served } from './served-collection.ts';
import { makersOwner } from './write-operations.ts';

/** Octets of records that are read and written together. Twice as many took a tenth less time, and 20 ms of one turn of the event loop. */
const batchBytesMax = 128 * 1024;

type Importing = {
  readonly options: ImportOptions;
  readonly content: Pick<Receiving, 'open'>;
};

type ImportProposal = Proposal & { readonly importing?: Importing };

export function importOperation(served: Served): Operation<Standing, Importing, ImportProposal> {
  const { collection, serving } = served;
  const alone = createQueue();
  return {
    permission: (principal) => mayWrite(collection, principal),
    contentTypes: importTypes,
    receivedBytesMax: serving.settings.importBytesMax,
    idempotent: true,
    reports: true,
    receive: (ask, content, mediaType) => receiveImport(served, ask, content, mediaType),
    standing: () => openStanding,
    propose: (_ask, _standing, importing) => ({ problem: null, ...(importing && { importing }) }),
    act: (ask, _standing, proposal) => {
      if (proposal?.importing === undefined) throw new Error('an import requires its content');
      return runImport(served, ask, proposal.importing, alone);
    },
  };
}

/** The companions of the request commit after the last batch, or with the unit of an atomic import. */
async function runImport(served: Served, ask: Ask, importing: Importing, alone: Alone): Promise<Result> {
  const { atomic, dryRun, events } = importing.options;
  const trial = dryRun ? new Trial(served, ask) : undefined;
  const store = trial?.store ?? served.store;
  const within = { ...served, store, announced: served.announced && events };
  const isOneUnit = atomic && !dryRun;
  const own = isOneUnit ? ask : { ...ask, companions: [] };
  const result = await new Import(within, own, importing, trial).run(alone);
  return 'made' in result && !isOneUnit ? withCompanions(served, ask, result.made) : result;
}

async function receiveImport(
  served: Served,
  ask: Ask,
  content: Receiving,
  mediaType: MediaType,
): Promise<Understood<Importing>> {
  const options = readImportOptions(served, ask, mediaType);
  if ('problem' in options) return { ok: false, problem: options.problem };
  const whole = content.isDueNow || options.atomic ? await readWhole(served, ask, content) : content;
  return { ok: true, value: { options, content: whole } };
}

/** Content that is held, to be read as often as its unit is overtaken. */
class WholeContent {
  readonly #chunks: readonly Uint8Array[];
  readonly bytes: number;

  constructor(chunks: readonly Uint8Array[], bytes: number) {
    this.#chunks = chunks;
    this.bytes = bytes;
  }

  async open(): Promise<ArrivingContent> {
    const chunks = this.#chunks;
    return (async function* () {
      yield* chunks;
    })();
  }
}

/** @throws ContentFailed */
async function readWhole({ serving }: Served, { request }: Ask, content: Receiving): Promise<WholeContent> {
  const { contentBytesMax } = bulkBoundOf(serving);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of await content.open()) {
    bytes += chunk.length;
    if (bytes > contentBytesMax) {
      const message = `an import that is atomic or has an Idempotency-Key has at most ${contentBytesMax} octets (COMITY_BULK_BYTES_MAX); others are written while they arrive`;
      throw new ContentFailed({ code: 'content_too_large', message });
    }
    if (request.memory?.hold(chunk.length) === false) throw new ContentFailed({ code: 'unavailable' });
    chunks.push(new Uint8Array(chunk));
  }
  return new WholeContent(chunks, bytes);
}

function bulkBoundOf({ settings, memory }: Served['serving']) {
  const { bulkItemsMax, bulkBytesMax } = settings;
  return bulkBound(bulkItemsMax, { most: bulkBytesMax, memoryBytes: memory?.budget.bytesMax });
}

// The run: content to batches, batches to items, items to results.

class Import {
  readonly #served: Served;
  readonly #ask: Ask;
  readonly #importing: Importing;
  readonly #bytesMax: number;
  #columns: readonly (Column | null)[] | undefined;
  /** The first record of CSV was looked at. */
  #isBegun = false;
  /** Why no more of the content can be read. */
  #fault: (CutFault & { readonly column?: number }) | undefined;
  #report: ImportReport;
  readonly #trial: Trial | undefined;

  /** @param served for the writes: in a dry run, over the store of the trial */
  constructor(served: Served, ask: Ask, importing: Importing, trial: Trial | undefined) {
    this.#trial = trial;
    this.#served = served;
    this.#ask = ask;
    this.#importing = importing;
    this.#columns = importing.options.columns;
    this.#report = new ImportReport(this.#columns);
    this.#bytesMax = bulkBoundOf(served.serving).contentBytesMax;
  }

  async run(alone: Alone): Promise<Result> {
    try {
      return await (this.#importing.options.atomic ? this.#writeWhole(alone) : this.#writeBatches());
    } catch (error) {
      if (error instanceof ContentFailed) return this.#stop(error.problem);
      if (error instanceof StoreUnavailable)
        return this.#stop({ code: 'unavailable', message: error.message });
      throw error;
    }
  }

  async #writeBatches(): Promise<Result> {
    const { threads, serving } = this.#served;
    const { bulkItemsMax: batchRecordsMax, contentInlineBytesMax } = serving.settings;
    const octetsMax = threads === undefined ? contentInlineBytesMax : batchBytesMax;
    const credential = watchCredential(this.#ask.known);
    try {
      for await (const batch of this.#batches({ batchRecordsMax, batchBytesMax: octetsMax })) {
        if (!(await credential.stands())) return this.#stop({ code: endedCode(this.#ask) });
        const octets = bulkRoom(batch.records.length, batch.bytes.length);
        const isWritten = await this.#withRoom(octets, async () => {
          const items = await this.#read(batch);
          const { how } = this.#importing.options;
          const written = await writeItems(this.#served, this.#ask, items, how);
          const results = this.#trial?.settled(items, written, how) ?? written;
          for (const [at, result] of results.entries())
            this.#report.add(batch.records[at]?.line ?? 0, result);
          return results.every((result) => !('problem' in result) || result.problem.code !== 'unavailable');
        });
        if (!isWritten) return this.#stop({ code: 'unavailable' });
      }
    } finally {
      credential.close();
    }
    if (this.#fault !== undefined) return this.#stopAt(this.#fault);
    return { made: madeReport(this.#report.text()), rev: 0 };
  }

  async #writeWhole(alone: Alone): Promise<Result> {
    const { bulkItemsMax } = this.#served.serving.settings;
    const bytes = this.#importing.content instanceof WholeContent ? this.#importing.content.bytes : 0;
    return this.#withRoom(bulkRoom(bulkItemsMax, bytes), async () => {
      const lines: number[] = [];
      const items: BulkItem[] = [];
      for await (const batch of this.#batches({ batchRecordsMax: bulkItemsMax, batchBytesMax })) {
        for (const item of await this.#read(batch)) items.push(item);
        for (const { line } of batch.records) lines.push(line);
        if (items.length > bulkItemsMax) {
          const message = `an atomic import has at most ${bulkItemsMax} records (COMITY_BULK_ITEMS_MAX)`;
          return this.#stop({ code: 'validation_failed', message });
        }
      }
      if (this.#fault !== undefined) return this.#stopAt(this.#fault);
      return this.#writeItems(items, lines, alone);
    });
  }

  async #writeItems(items: readonly BulkItem[], lines: readonly number[], alone: Alone): Promise<Result> {
    const { how } = this.#importing.options;
    let first: Problem | undefined;
    for (const [at, item] of items.entries()) {
      if (!('problem' in item) || item.change !== undefined) continue;
      first ??= item.problem;
      this.#report.add(lines[at] ?? 0, item);
    }
    if (first !== undefined) return this.#stop(first);
    const report = (results: readonly ItemResult[]) => {
      const whole = new ImportReport(this.#columns);
      for (const [at, result] of results.entries()) whole.add(lines[at] ?? 0, result);
      return madeReport(whole.text());
    };
    const result = await writeTogether(this.#served, this.#ask, { bulk: { ...how, items }, alone, report });
    if (!('refused' in result)) return result;
    const { errors = [], ...problem } = result.refused;
    const [, index = '0'] = itemPointer.exec(errors[0]?.pointer ?? '') ?? [];
    const own = errors.map(({ pointer, message }) => ({
      pointer: pointer.replace(itemPointer, ''),
      message,
    }));
    this.#report.add(lines[Number(index)] ?? 0, { problem: { ...problem, errors: own } });
    return this.#stop(problem);
  }

  /** Batches of records, as the content arrives. Sets `#columns` before the first, and `#fault` after the last. @throws ContentFailed */
  async *#batches(bounds: Omit<CutBounds, 'recordBytesMax'>): AsyncGenerator<RecordBatch> {
    const { content, options } = this.#importing;
    const { format, hasHeader } = options;
    const cutter = new RecordCutter(format, { ...bounds, recordBytesMax: this.#bytesMax });
    const { memory } = this.#ask.request;
    let heldBytes = 0;
    for await (const chunk of await content.open()) {
      cutter.take(chunk);
      if (memory?.hold(cutter.capacity - heldBytes) === false)
        throw new ContentFailed({ code: 'unavailable' });
      heldBytes = cutter.capacity;
      for (let batch = cutter.next(); batch !== undefined; batch = cutter.next()) {
        const records = this.#recordsOf(batch);
        if (this.#fault !== undefined) return;
        yield { ...batch, records };
      }
      if (cutter.fault !== undefined) break;
    }
    for (let batch = cutter.last(); batch !== undefined; batch = cutter.last()) {
      const records = this.#recordsOf(batch);
      if (this.#fault !== undefined) return;
      yield { ...batch, records };
    }
    this.#fault = cutter.fault;
    if (format === 'csv' && hasHeader && !this.#isBegun)
      this.#fault ??= { line: 1, message: 'the content has no header' };
  }

  /** The records of a batch without the header of CSV, which is the first record of all. */
  #recordsOf({ bytes, records }: RecordBatch): readonly CutRecord[] {
    const { format, hasHeader } = this.#importing.options;
    const [first, ...others] = records;
    if (format !== 'csv' || !hasHeader || this.#isBegun || first === undefined) return records;
    this.#isBegun = true;
    const text = first.isTooLong === true ? undefined : decodeText(bytes.subarray(first.start, first.end));
    const header =
      text === undefined
        ? { column: 1, message: 'the header is not UTF-8, or too long' }
        : this.#readHeader(text);
    if ('columns' in header) {
      this.#columns = header.columns;
      this.#report = new ImportReport(header.columns);
    } else this.#fault = { line: first.line, ...header };
    return others;
  }

  /** The columns of the header, or those of the parameter, of which the file must have as many. */
  #readHeader(text: string): Header {
    const { columns } = this.#importing.options;
    if (columns === undefined) return readHeader(columnNames(this.#served, this.#ask), text, columnsMax);
    const row = parseCsvRecord(text, columnsMax);
    if (!row.ok) return { column: row.column, message: `the header's cell ${row.column} ${row.message}` };
    const [cells, names] = [row.cells.length, columns.length];
    if (cells === names) return { columns };
    const message = `the header has ${cells} cells, and the parameter columns ${names} names`;
    return { column: Math.min(cells, names), message };
  }

  /** Reads and checks records. Those whose references have keys are read again when these are resolved. */
  async #read(batch: RecordBatch): Promise<readonly BulkItem[]> {
    const items = await this.#readOnce(batch);
    const keys = new Map(items.flatMap((item) => ('keys' in item ? [...item.keys] : [])));
    if (keys.size === 0) return items as readonly BulkItem[];
    const resolved = await findReferences(this.#served, this.#ask, keys);
    const waiting = batch.records.filter((_, at) => 'keys' in (items[at] ?? {}));
    const again = (await this.#readOnce({ ...batch, records: waiting }, resolved)).values();
    return items.map((item) => ('keys' in item ? again.next().value : item)) as readonly BulkItem[];
  }

  /** On a content thread if they are long. */
  async #readOnce(
    batch: RecordBatch,
    resolved?: ReadonlyMap<string, Resolved>,
  ): Promise<readonly ReadRecord[]> {
    const { threads, collection, validator, serving } = this.#served;
    const { principal, party } = this.#ask;
    const writer = { principal, owner: makersOwner(this.#served, principal) };
    const reading: ImportReading = {
      how: this.#importing.options.how,
      writer,
      computed: [...(collection.computed?.keys() ?? [])],
      stamped: [...(collection.stamp?.keys() ?? [])],
      ...(this.#columns === undefined ? {} : { columns: this.#columns }),
      recordBytesMax: this.#bytesMax,
      references: referencePaths(collection),
      ...(resolved === undefined ? {} : { resolved }),
    };
    if (threads === undefined || batch.bytes.length <= threads.inlineBytesMax) {
      await this.#served.turns.next();
      return readRecords({ collection, validator, contentLimits: serving.settings }, batch, reading);
    }
    const closings = closingsFor(collection, principal);
    const job = {
      kind: 'import',
      content: batch,
      reading: { ...reading, writer: { ...writer, closings } },
    } as const;
    const outcome = await threads.carryOut(job, party);
    if (!outcome.ok) return batch.records.map(() => ({ problem: outcome.problem }));
    if (outcome.items === undefined) throw new Error('a content thread returned no items');
    return outcome.items;
  }

  /** Works once there is room for what the records become. @throws StoreUnavailable */
  async #withRoom<T>(octets: number, work: () => Promise<T>): Promise<T> {
    const made = this.#served.serving.memory?.made;
    if (made === undefined) return work();
    if (made.isFull) throw new StoreUnavailable('the memory for what requests make is used up');
    return made.run(octets, work);
  }

  #stopAt({ line, column, message }: CutFault & { readonly column?: number }): Result {
    const place = column === undefined ? { line } : { line, column };
    this.#report.list({ ...place, code: 'content_malformed', message });
    return this.#stop({ code: 'content_malformed', message: `line ${line}: ${message}`, context: place });
  }

  /** The refusal of an import, with what was written before it. */
  #stop({ errors: _, ...problem }: Problem): Result {
    return { refused: { ...problem, context: { ...problem.context, ...this.#report.members() } } };
  }
}

/** The references that name their document by a text. */
function referencePaths({ references, fields }: Served['collection']): readonly (readonly string[])[] {
  return references.flatMap(({ field: name }) => {
    const field = fields.get(name);
    return field?.type === 'string' ? [field.path] : [];
  });
}

const itemPointer = /^\/items\/(\d+)/;

function endedCode({ known }: Ask): Problem['code'] {
  return known?.scheme === 'key' ? 'invalid_api_key' : 'invalid_token';
}

function bulkRoom(records: number, bytes: number): number {
  return records * workRules.bulkItem.octets + bytes * workRules.bulkOctet.octets;
}

// The answer: numbers of records, and the first faults. A refusal has the same members, as what was written before it.

/** Faults that an answer lists; further ones are counted. */
const importErrorsMax = 100;

/** A fault, with the place of what is at fault. */
type ImportError = {
  readonly line: number;
  /** Of CSV, from 1. */
  readonly column?: number;
  /** A JSON Pointer to the member. */
  readonly member?: string;
  readonly code: string;
  readonly message: string;
};

class ImportReport {
  readonly #columns = new Map<string, number>();
  readonly #counts = { created: 0, updated: 0, unchanged: 0, refused: 0 };
  readonly #errors: ImportError[] = [];
  #errorsMore = 0;

  constructor(columns: readonly (Column | null)[] = []) {
    for (const [at, column] of columns.entries()) {
      if (column === null) continue;
      this.#columns.set(formatJsonPointer(column.path), at + 1);
      const { reference } = column;
      const pointer = reference === undefined ? undefined : formatJsonPointer(reference.path);
      if (pointer !== undefined && !this.#columns.has(pointer)) this.#columns.set(pointer, at + 1);
    }
  }

  add(line: number, result: ItemResult | { readonly problem: Problem }): void {
    if ('problem' in result) {
      this.#counts.refused += 1;
      this.#listProblem(line, result.problem);
    } else if (result.unchanged === true) this.#counts.unchanged += 1;
    else if (result.status === answers.created.status) this.#counts.created += 1;
    else this.#counts.updated += 1;
  }

  #listProblem(line: number, problem: Problem): void {
    const { errors = [], errorCodes = [], context } = problem;
    for (const [at, { pointer, message }] of errors.entries()) {
      const code = errorCodes[at] ?? codeOf(problem);
      const column = this.#columnOf(pointer);
      const place = { line, ...(column === undefined ? {} : { column }) };
      this.list({ ...place, ...(pointer === '' ? {} : { member: pointer }), code, message });
    }
    if (errors.length > 0) return;
    const column = context?.column;
    const place = { line, ...(typeof column === 'number' ? { column } : {}) };
    this.list({ ...place, code: codeOf(problem), message: messageOf(problem) });
  }

  list(error: ImportError): void {
    if (this.#errors.length < importErrorsMax) this.#errors.push(error);
    else this.#errorsMore += 1;
  }

  /** The column that has the member, or what it is part of. */
  #columnOf(pointer: string): number | undefined {
    for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const column = this.#columns.get(at);
      if (column !== undefined) return column;
    }
    return undefined;
  }

  members() {
    const more = this.#errorsMore === 0 ? {} : { errorsMore: this.#errorsMore };
    return { ...this.#counts, errors: this.#errors, ...more };
  }

  text(): string {
    return JSON.stringify(this.members());
  }
}
