/**
 * POST {collection}/bulk (§4.19): creates many resources in one request. Each item is treated as the content of a POST:
 * the same rules, hooks, events and limits. By default all items are one unit, so all are created or none; with
 * `atomic: false` each item is a unit of its own with a result of its own. Administrators may import documents, with
 * their ids, times and owners. Bulk deletion stands in remove.ts.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { answers } from '../../http/conduct/answers.ts';
import { type FieldError, type Problem, problemBody, statusOf } from '../../http/problem.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Ask, Made, Operation, Proposal, Result, Standing, Understood } from '../../kernel/resource.ts';
import { bulkBound, bulkOctets } from '../../memory/work-rules.ts';
import { permission } from '../../model/access.ts';
import { ownerMember } from '../../model/collection.ts';
import { ownerField } from '../../model/field.ts';
import { isAdministrator } from '../../model/principal.ts';
import { UnitTooLarge } from '../../store/group-commit.ts';
import {
  type Change,
  type EventEntry,
  type MaybePromise,
  Overtaken,
  type Row,
  StoreUnavailable,
  whenKnown,
} from '../../store/store.ts';
import { type BulkContent, type BulkItem, type ImportOptions, readBulk } from '../document/bulk-content.ts';
import { closingsFor } from '../document/closed-members.ts';
import { fixedFaults } from '../document/propose.ts';
import { type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import { commitUnit, documentTooLong, tooLong, tooLongTogether } from './commit.ts';
import { type ListProposal, proposeList, repeatedFields, representList } from './list-answer.ts';
import { closedTo, type Judgement, mayCreate, tenantProblem } from './member.ts';
import { eventOf, nextRow, timeAfter } from './row.ts';
import { openStanding, type ProposedWrite, type Served } from './served-collection.ts';
import { withStamps } from './server-fields.ts';
import { makersOwner, understandBody } from './write-operations.ts';

type BulkProposal = Proposal & { readonly bulk: BulkContent | undefined };

export function bulkOperation(served: Served): Operation<Standing, BulkContent, BulkProposal> {
  const { collection, serving } = served;
  const { bulkItemsMax, bulkBytesMax } = serving.settings;
  const alone = createQueue();
  return {
    permission: (principal) => permission(collection.access.create, 'create', principal),
    contentTypes: ['application/json'],
    ...bulkBound(bulkItemsMax, { most: bulkBytesMax, memoryBytes: serving.memory?.budget.bytesMax }),
    makes: (bytes) => bulkOctets(bytes, bulkItemsMax),
    idempotent: true,
    asynchronous: true,
    reports: true,
    understand: (ask, bytes, mediaType) => understandBulk(served, ask, { bytes, mediaType }),
    standing: () => openStanding,
    propose: (ask, _standing, bulk) => proposeBulk(served, ask, bulk),
    act: (ask, _standing, proposal) => {
      const bulk = proposal?.bulk;
      if (bulk === undefined) throw new Error('a bulk request requires its items');
      const within = bulk.import?.events === false ? { ...served, announced: false } : served;
      return bulk.atomic ? createTogether(within, ask, bulk, alone) : createEach(within, ask, bulk);
    },
  };
}

/** Reads and checks all items: on a content thread if the content is long. */
function understandBulk(
  served: Served,
  ask: Ask,
  content: { readonly bytes: Uint8Array; readonly mediaType: MediaType },
): MaybePromise<Understood<BulkContent>> {
  const { threads, collection, serving } = served;
  const itemsMax = serving.settings.bulkItemsMax;
  const { principal, party } = ask;
  const computed = [...(collection.computed?.keys() ?? [])];
  const stamped = [...(collection.stamp?.keys() ?? [])];
  const writer = { principal, owner: makersOwner(served, principal) };
  if (threads !== undefined && content.bytes.length > threads.inlineBytesMax) {
    const closings = closingsFor(collection, principal);
    const job = {
      kind: 'bulk',
      content,
      writer: { ...writer, closings },
      itemsMax,
      computed,
      stamped,
    } as const;
    return whenKnown(threads.carryOut(job, party), (outcome) => {
      if (!outcome.ok) return outcome;
      if (outcome.bulk === undefined) throw new Error('a content thread returned no items');
      return { ok: true, value: outcome.bulk };
    });
  }
  return whenKnown(understandBody(served, content.bytes, content.mediaType), (understood) => {
    if (!understood.ok) return understood;
    const read = readBulk(served, understood.value, { writer, itemsMax, computed, stamped });
    return read.ok ? { ok: true, value: read.bulk } : read;
  });
}

function proposeBulk(served: Served, ask: Ask, bulk: BulkContent | undefined): BulkProposal {
  if (bulk === undefined) throw new Error('a bulk request requires its items');
  if (bulk.import !== undefined && !isAdministrator(ask.principal)) {
    const message = 'only an administrator may import documents with their ids, times and owners';
    return { problem: { code: 'forbidden', message }, bulk: undefined };
  }
  const problem = bulk.atomic ? problemOfItems(bulk.items, served.validator.errorsMax) : null;
  return { problem, bulk: problem === null ? bulk : undefined };
}

/** The faults of all items, under the code of the first item at fault. */
function problemOfItems(items: readonly BulkItem[], errorsMax: number): Problem | null {
  let first: Problem | undefined;
  const errors: FieldError[] = [];
  for (const [index, item] of items.entries()) {
    if (!('problem' in item)) continue;
    first ??= item.problem;
    if (errors.length < errorsMax) errors.push(...(ofItem(index, item.problem).errors ?? []));
  }
  return first === undefined ? null : { ...first, errors: errors.slice(0, errorsMax) };
}

/** The problem of one item as one of the request. */
function ofItem(index: number, problem: Problem): Problem {
  const at = `/items/${index}`;
  const { errors = [{ pointer: '', message: problem.message ?? 'was refused' }] } = problem;
  return { ...problem, errors: errors.map(({ pointer, message }) => ({ pointer: at + pointer, message })) };
}

type ItemResult =
  | { readonly status: number; readonly id: string; readonly unchanged?: true }
  | { readonly problem: Problem };

type ItemWrite = ProposedWrite & {
  readonly fields: FieldsOrWritten;
  readonly index: number;
  readonly item: Exclude<BulkItem, { readonly problem: Problem }>;
  /** The row to replace, softly deleted or not. */
  readonly row: Row | undefined;
  readonly isImport: boolean;
};

/** What to do with an item: a write, or a result without one. */
async function planItem(
  served: Served,
  index: number,
  item: BulkItem,
  options: ImportOptions | undefined,
): Promise<ItemWrite | ItemResult> {
  if ('problem' in item) return item;
  const fields = new WrittenFields(item.fields);
  const { id } = item.given;
  const planned = { fields, index, item, isImport: options !== undefined };
  if (id === undefined)
    return { ...planned, action: 'create', id: served.newId(), before: undefined, row: undefined };
  const reading = served.store.read(served.collection.name, id);
  const row = reading instanceof Promise ? await reading : reading;
  const before = row?.deletedAt === null ? row : undefined;
  if (before !== undefined && options?.existing === 'skip') return unchanged(id);
  if (before !== undefined && options?.existing !== 'update') {
    const message = 'id is already in use';
    const errors = [{ pointer: '/id', message: 'already in use' }];
    return { problem: { code: 'unique_taken', message, errors } };
  }
  const fixed = before === undefined ? [] : fixedFaults(served, before.doc, item.fields.text);
  if (fixed.length > 0) return { problem: { code: 'field_unpatchable', errors: fixed } };
  return { ...planned, action: before === undefined ? 'create' : 'update', id, before, row };
}

/** Only administrators replace resources in a bulk request. */
const anyone: Judgement = { permitted: true, restsOn: [] };

type Built =
  | { readonly change: Change; readonly event: EventEntry; readonly restsOn: readonly Change[] }
  | 'unchanged'
  | { readonly problem: Problem };

function buildItem(served: Served, ask: Ask, write: ItemWrite, fields: FieldsOrWritten): MaybePromise<Built> {
  const { id, item, before, row } = write;
  const { given } = item;
  const at = timeAfter(served.clock, row?.updatedAt ?? 0);
  const createdAt = given.createdAt ?? before?.createdAt ?? at;
  const next = nextRow(served, {
    id,
    fields: withStamps(served, ask, fields, { before: before?.doc, at, isImport: write.isImport }),
    owner: given.owner ?? (given.owner === null ? null : ownerOfWrite(served, ask, before)),
    createdAt,
    updatedAt: given.updatedAt ?? Math.max(at, createdAt),
    deletedAt: null,
  });
  if (before !== undefined && before.doc === next.doc && before.owner === next.owner) return 'unchanged';
  if (next.doc.length > served.documentCharactersMax) return { problem: documentTooLong(served) };
  const moved = before === undefined ? tenantProblem(served, row, next) : undefined;
  if (moved !== undefined) return { problem: moved };
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  const kind = before === undefined ? 'created' : 'updated';
  const judgement = before === undefined ? mayCreate(served, ask.principal, next) : anyone;
  return whenKnown(judgement, ({ permitted, restsOn }) =>
    permitted
      ? {
          change: { table: served.collection.name, id, expect, next },
          event: eventOf(served, kind, { id, row: next, formerOwner: before?.owner }, at, before?.doc),
          restsOn,
        }
      : { problem: closedTo(ask.principal).refused },
  );
}

function ownerOfWrite(served: Served, ask: Ask, before: Row | undefined): string | null {
  return before === undefined ? makersOwner(served, ask.principal) : before.owner;
}

/** One unit of all items. */
async function createTogether(
  served: Served,
  ask: Ask,
  { items, import: options }: BulkContent,
  alone: Alone,
): Promise<Result> {
  const writes: ItemWrite[] = [];
  const results: ItemResult[] = [];
  const named = new Set<string>();
  const charactersMax = served.store.unitCharactersMax;
  let replaced = 0;
  for (const [index, item] of items.entries()) {
    await served.turns.next();
    const planned = await planItem(served, index, item, options);
    replaced += 'row' in planned ? (planned.row?.doc.length ?? 0) : 0;
    if (replaced > charactersMax) return { refused: tooLongTogether('to replace', charactersMax) };
    if ('problem' in planned) return { refused: ofItem(index, planned.problem) };
    const isRepeated = named.has(planned.id);
    if (isRepeated) return { refused: ofItem(index, repeatedId) };
    named.add(planned.id);
    if ('action' in planned) writes.push(planned);
    results.push('action' in planned ? resultOf(planned) : planned);
  }
  const places = new Map(writes.map(({ id, index }) => [id, `/items/${index}`]));
  const placed: Served = { ...served, placeOf: (id) => places.get(id) ?? '' };
  const make = async (within: Served, own: Ask, fields: readonly FieldsOrWritten[]): Promise<Result> => {
    const changes: Change[] = [];
    const events: EventEntry[] = [];
    const restsOn: Change[] = [];
    for (const [at, write] of writes.entries()) {
      await served.turns.next();
      const building = buildItem(within, own, write, fields[at] ?? write.fields);
      const built = building instanceof Promise ? await building : building;
      if (built === 'unchanged') results[write.index] = unchanged(write.id);
      else if ('problem' in built) return { refused: ofItem(write.index, built.problem) };
      else {
        changes.push(built.change);
        events.push(built.event);
        restsOn.push(...built.restsOn);
      }
    }
    const before = new Map(writes.map(({ id, before: row }) => [id, row]));
    await nextTurn();
    return commitUnit(
      within,
      own,
      { changes, events },
      report(results),
      changes.map(({ id }) => before.get(id)),
      restsOn,
    );
  };
  if (placed.logic === undefined || writes.length === 0) {
    const fields = writes.map((write) => write.fields);
    return alone(() => make(placed, ask, fields));
  }
  return placed.logic.write(placed, ask, writes, make);
}

const repeatedId: Problem = {
  code: 'validation_failed',
  errors: [{ pointer: '/id', message: 'another item has this id' }],
};

function resultOf({ action, id }: ItemWrite): ItemResult {
  return { status: (action === 'create' ? answers.created : answers.changed).status, id };
}

/** Items that are under way at once; the store commits those that wait together. One that replaces a resource holds it. */
function atOnceOf({ store, documentCharactersMax }: Served, options: ImportOptions | undefined): number {
  if (options?.existing !== 'update') return 256;
  return Math.max(1, Math.min(256, Math.floor(store.unitCharactersMax / documentCharactersMax)));
}

/** A unit for each item. The companions of the request commit after the last one. */
async function createEach(
  served: Served,
  ask: Ask,
  { items, import: options }: BulkContent,
): Promise<Result> {
  const results: ItemResult[] = [];
  const own = { ...ask, companions: [] };
  const atOnce = atOnceOf(served, options);
  for (let start = 0; start < items.length; start += atOnce) {
    const some = items.slice(start, start + atOnce);
    const settled = await Promise.allSettled(
      some.map(async (item, offset) => {
        // Rows are built in turns of the event loop, so that other requests come between.
        await served.turns.next();
        return createOne(served, own, start + offset, { item, options });
      }),
    );
    for (const each of settled) {
      if (each.status === 'fulfilled') results.push(each.value);
      else if (each.reason instanceof StoreUnavailable) results.push({ problem: { code: 'unavailable' } });
      else if (each.reason instanceof UnitTooLarge) results.push({ problem: tooLong(each.reason.message) });
      else throw each.reason;
    }
  }
  const made = report(results);
  if (ask.companions.length === 0) return { made, rev: 0 };
  const changes = ask.companions.map((companion) => companion(made));
  const commit = await served.store.commit({ changes, events: [] });
  if (commit.outcome !== 'committed') return { refused: { code: 'idempotency_key_in_use' } };
  return { made, rev: commit.rev };
}

function createOne(
  served: Served,
  ask: Ask,
  index: number,
  { item, options }: { readonly item: BulkItem; readonly options: ImportOptions | undefined },
): Promise<ItemResult> {
  const { store, logic, collection } = served;
  const { id } = 'given' in item ? item.given : {};
  let hasTurn = false;
  return store.lines.change(
    id === undefined ? undefined : { table: collection.name, id },
    async (): Promise<ItemResult | Overtaken> => {
      const planned = await planItem(served, index, item, options);
      if (!('action' in planned)) return planned;
      let isUnchanged = false;
      const make = (within: Served, by: Ask, [fields = planned.fields]: readonly FieldsOrWritten[]) => {
        return whenKnown(buildItem(within, by, planned, fields), (built): MaybePromise<Result> => {
          isUnchanged = built === 'unchanged';
          if (built === 'unchanged') return { made: report([]), rev: 0 };
          if ('problem' in built) return { refused: built.problem };
          const unit = { changes: [built.change], events: [built.event] };
          return commitUnit(within, by, unit, report([]), [planned.before], built.restsOn);
        });
      };
      const own = { ...ask, hasTurn };
      const result = await (logic === undefined
        ? make(served, own, [planned.fields])
        : logic.write(served, own, [planned], make));
      if (result instanceof Overtaken) {
        // The next attempt comes when this write is first in the line of the row.
        hasTurn = true;
        return result;
      }
      if ('refused' in result) return { problem: result.refused };
      return isUnchanged ? unchanged(planned.id) : resultOf(planned);
    },
  );
}

function unchanged(id: string): ItemResult {
  return { status: answers.changed.status, id, unchanged: true };
}

/** The response: one entry for each item, in their order. */
function report(results: readonly ItemResult[]): Made {
  const items = results.map((result) =>
    'problem' in result
      ? `{"status":${statusOf(result.problem)},${problemBody(result.problem).slice(1)}`
      : JSON.stringify(result),
  );
  return {
    outcome: 'made',
    created: false,
    location: null,
    doc: `{"items":[${items.join(',')}]}`,
    modifiedAt: null,
    validated: false,
  };
}

type Alone = (make: () => Promise<Result>) => Promise<Result>;

/** Lets one make its unit after the other. The rows of many at once kept the garbage collector busy for 100 ms of one turn. */
function createQueue(): Alone {
  let last: Promise<unknown> = Promise.resolve();
  return (make) => {
    const made = last.then(make);
    last = made.catch(() => undefined);
    return made;
  };
}

/**
 * GET {collection}/bulk (§4.19.6): documents as they are stored, with their owners, in the form that an import takes.
 * For administrators. It takes the parameters of a list and has its pages; `afterRead` does not apply.
 */
export function exportOperation(served: Served): Operation<Standing, never, ListProposal> {
  const { listing, collection, store } = served;
  const owner = { ...ownerField, name: ownerMember(collection) };
  const cacheControl = 'private, no-store';
  return {
    permission: (principal) => (isAdministrator(principal) ? 'granted' : 'denied'),
    standing: () => openStanding,
    propose: (ask) => proposeList(listing, ask, `${served.path}/bulk`),
    validators: async (ask) => {
      const fields = repeatedFields(listing);
      return { tag: await listing.tag(ask.principal), modifiedAt: null, cacheControl, fields };
    },
    represent: async (ask, _standing, proposal) => {
      if (proposal?.list === undefined) throw new Error('an export requires its query');
      const { prepared, position } = proposal.list;
      const asked = { ...prepared.asked, owner };
      const place = listing.place();
      const page = await listing.pageFrom(store, { ...prepared, asked }, ask.principal, position);
      return representList(ask, { listing, cacheControl, ...proposal.list, page, place });
    },
  };
}
