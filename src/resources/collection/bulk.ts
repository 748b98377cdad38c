/**
 * POST {collection}/bulk (§4.19): creates and changes many resources in one request. Each item is treated as the content of a single request:
 * the same rules, hooks, events and limits (bulk-writes.ts). By default all items are one unit, so all are written or none; with
 * `atomic: false` each item is a unit of its own with a result of its own. Administrators may import documents, with
 * their ids, times and owners. Bulk deletion stands in remove.ts.
 */
import { answers } from '../../http/conduct/answers.ts';
import { type FieldError, type Problem, problemBody, statusOf } from '../../http/problem.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Ask, Made, Operation, Proposal, Result, Standing, Understood } from '../../kernel/resource.ts';
import { bulkBound, bulkOctets } from '../../memory/work-rules.ts';
import { type Permission, permission } from '../../model/access.ts';
import { ownerMember } from '../../model/collection.ts';
import { ownerField } from '../../model/field.ts';
import { foldCase } from '../../model/fold-case.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import { UnitTooLarge } from '../../store/group-commit.ts';
import { type MaybePromise, Overtaken, StoreUnavailable, whenKnown } from '../../store/store.ts';
import { type BulkContent, type BulkItem, type How, readBulk } from '../document/bulk-content.ts';
import { closingsFor } from '../document/closed-members.ts';
import type { FieldsOrWritten } from '../document/representation.ts';
import {
  type Alone,
  buildItem,
  commitTogether,
  createQueue,
  type ItemResult,
  type ItemWrite,
  idOfKey,
  madeReport,
  planItem,
  unchanged,
} from './bulk-writes.ts';
import { commitUnit, tooLong, tooLongTogether } from './commit.ts';
import { type ListProposal, proposeList, repeatedFields, representList } from './list-answer.ts';
import { openStanding, type Served } from './served-collection.ts';
import { makersOwner, understandBody } from './write-operations.ts';

type BulkProposal = Proposal & { readonly bulk: BulkContent | undefined };

export function bulkOperation(served: Served): Operation<Standing, BulkContent, BulkProposal> {
  const { collection, serving } = served;
  const { bulkItemsMax, bulkBytesMax } = serving.settings;
  const alone = createQueue();
  return {
    permission: (principal) => mayWrite(collection, principal),
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
      return bulk.atomic ? writeTogether(within, ask, { bulk, alone, report }) : writeEach(within, ask, bulk);
    },
  };
}

/** Some items may create documents, and others change them. */
export function mayWrite({ access }: Served['collection'], principal: Principal): Permission {
  const create = permission(access.create, 'create', principal);
  const isClosed = create === 'denied' && permission(access.update, 'update', principal) === 'denied';
  return create === 'granted' ? create : isClosed ? 'denied' : 'depends';
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
    if (!('problem' in item) || item.change !== undefined) continue;
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

/** Attempts at a unit that another request overtook by creating what it creates. */
const attemptsMax = 8;

/** What is written together, and how it is answered. */
type Whole = {
  readonly bulk: Pick<BulkContent, 'items'> & How;
  readonly alone: Alone;
  readonly report: (results: readonly ItemResult[]) => Made;
};

/** One unit of all items. It is planned anew where a document that it would create exists meanwhile. */
export async function writeTogether(served: Served, ask: Ask, whole: Whole): Promise<Result> {
  let creations = -1;
  for (let attempt = 1; ; attempt += 1) {
    const writes: ItemWrite[] = [];
    const result = await planAndWrite(served, ask, whole, writes);
    const created = writes.filter(({ action }) => action === 'create').length;
    const isTaken = 'refused' in result && result.refused.code === 'unique_taken';
    const isLast = whole.bulk.key === undefined || attempt === attemptsMax || created === creations;
    if (!isTaken || isLast) return result;
    creations = created;
  }
}

async function planAndWrite(
  served: Served,
  ask: Ask,
  { bulk, alone, report }: Whole,
  writes: ItemWrite[],
): Promise<Result> {
  const { items } = bulk;
  const results: ItemResult[] = [];
  const named = new Set<string>();
  const charactersMax = served.store.unitCharactersMax;
  let replaced = 0;
  for (const [index, item] of items.entries()) {
    await served.turns.next();
    const key = keyTextOf(item, bulk);
    if (key !== undefined && named.has(key)) return { refused: ofItem(index, repeatedKey(bulk)) };
    if (key !== undefined) named.add(key);
    const planned = await planItem(served, ask, index, item, bulk);
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
  return commitTogether(placed, ask, writes, {
    alone,
    refused: ({ index }, problem) => ofItem(index, problem),
    onUnchanged: ({ index, id }) => {
      results[index] = unchanged(id);
    },
    made: () => report(results),
  });
}

/** The values by which an item names its document; undefined: it names it by its id, or not at all. */
function keyTextOf({ change }: BulkItem, { key = [] }: Pick<How, 'key'>): string | undefined {
  const names = change?.names;
  if (names === undefined || typeof names === 'string') return undefined;
  const values = names.map((value, at) =>
    key[at]?.folded === true && typeof value === 'string' ? foldCase(value) : value,
  );
  return JSON.stringify(values);
}

/** No value is in use: the request contradicts itself. */
function repeatedKey({ key = [] }: Pick<How, 'key'>): Problem {
  const names = key.map(({ name }) => name);
  const message = `another item of the request has the same ${names.join(' and ')}, and each document is written once`;
  const errors = key.map(({ path }) => ({ pointer: formatJsonPointer(path), message }));
  return { code: 'validation_failed', message, errors };
}

const repeatedId: Problem = {
  code: 'validation_failed',
  errors: [{ pointer: '/id', message: 'another item has this id' }],
};

function resultOf({ action, id }: ItemWrite): ItemResult {
  return { status: (action === 'create' ? answers.created : answers.changed).status, id };
}

/** Items that are under way at once; the store commits those that wait together. One that replaces a resource holds it. */
function atOnceOf({ store, documentCharactersMax }: Served, how: How): number {
  if (how.mode === 'create' && how.import?.existing !== 'update') return 256;
  return Math.max(1, Math.min(256, Math.floor(store.unitCharactersMax / documentCharactersMax)));
}

/** A unit for each item. The companions of the request commit after the last one. */
async function writeEach(served: Served, ask: Ask, bulk: BulkContent): Promise<Result> {
  return withCompanions(served, ask, report(await writeItems(served, ask, bulk.items, bulk)));
}

/** A unit for each item, and its result, in their order. */
export async function writeItems(
  served: Served,
  ask: Ask,
  items: readonly BulkItem[],
  how: How,
): Promise<readonly ItemResult[]> {
  const results: ItemResult[] = [];
  const own = { ...ask, companions: [] };
  const atOnce = atOnceOf(served, how);
  for (let start = 0; start < items.length; start += atOnce) {
    const some = items.slice(start, start + atOnce);
    const settled = await Promise.allSettled(
      some.map(async (item, offset) => {
        // Rows are built in turns of the event loop, so that other requests come between.
        await served.turns.next();
        return writeOne(served, own, start + offset, { item, how });
      }),
    );
    for (const each of settled) {
      if (each.status === 'fulfilled') results.push(each.value);
      else if (each.reason instanceof StoreUnavailable) results.push({ problem: { code: 'unavailable' } });
      else if (each.reason instanceof UnitTooLarge) results.push({ problem: tooLong(each.reason.message) });
      else throw each.reason;
    }
  }
  return results;
}

/** Commits the companions of a request whose changes are made. */
export async function withCompanions(served: Served, ask: Ask, made: Made): Promise<Result> {
  if (ask.companions.length === 0) return { made, rev: 0 };
  const changes = ask.companions.map((companion) => companion(made));
  const commit = await served.store.commit({ changes, events: [] });
  if (commit.outcome !== 'committed') return { refused: { code: 'idempotency_key_in_use' } };
  return { made, rev: commit.rev };
}

async function writeOne(
  served: Served,
  ask: Ask,
  index: number,
  { item, how }: { readonly item: BulkItem; readonly how: How },
): Promise<ItemResult> {
  const result = await writeAlone(served, ask, index, { item, how });
  const isRaced = item.change !== undefined && 'problem' in result && result.problem.code === 'unique_taken';
  // Another request may have created the document that the item names: it then changes that one.
  return isRaced && (await namesOne(served, item, how))
    ? writeAlone(served, ask, index, { item, how })
    : result;
}

async function namesOne(served: Served, { change }: BulkItem, { key }: How): Promise<boolean> {
  if (change === undefined || typeof change.names === 'string') return true;
  return (await idOfKey(served, key ?? [], change.names)) !== undefined;
}

function writeAlone(
  served: Served,
  ask: Ask,
  index: number,
  { item, how }: { readonly item: BulkItem; readonly how: How },
): Promise<ItemResult> {
  const { store, logic, collection } = served;
  const { id } = 'given' in item ? item.given : {};
  let hasTurn = false;
  return store.lines.change(
    id === undefined ? undefined : { table: collection.name, id },
    async (): Promise<ItemResult | Overtaken> => {
      const planned = await planItem(served, ask, index, item, how);
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

/** The response: one entry for each item, in their order. */
function report(results: readonly ItemResult[]): Made {
  const items = results.map((result) =>
    'problem' in result
      ? `{"status":${statusOf(result.problem)},${problemBody(result.problem).slice(1)}`
      : JSON.stringify(result),
  );
  return madeReport(`{"items":[${items.join(',')}]}`);
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
    validators: async (ask, _standing, proposal) => {
      const fields = repeatedFields(listing);
      const tag = await listing.tag(ask.principal, proposal?.list?.prepared);
      return { tag, modifiedAt: null, cacheControl, fields };
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
