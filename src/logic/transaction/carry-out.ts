/**
 * Carries out the calls of a function by the operations of the collections, without an HTTP request and without the walk
 * (§4.14.5). They pass the same stages as a request, except negotiation, preconditions and rate limits.
 */
import type { Request } from '../../http/message.ts';
import { readRequestFields } from '../../http/request-fields.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import {
  type Ask,
  type Made,
  noPreferences,
  type Operation,
  type Proposal,
  type Standing,
} from '../../kernel/resource.ts';
import { tablesOf } from '../../model/filter.ts';
import type { Principal } from '../../model/principal.ts';
import { GroupsExceeded, type ListPage } from '../../resources/collection/list-page.ts';
import type { MemberStanding } from '../../resources/collection/member.ts';
import { readQueryText } from '../../resources/collection/query.ts';
import { removeOperation } from '../../resources/collection/remove.ts';
import type { Served } from '../../resources/collection/served-collection.ts';
import {
  createOperation,
  patchOperation,
  replaceOperation,
} from '../../resources/collection/write-operations.ts';
import type { QueryLimits } from '../../resources/query/list-query.ts';
import { alteredCursor, queryProblem } from '../../resources/query/query-faults.ts';
import type { MaybePromise } from '../../store/store.ts';
import { FunctionFailed } from '../function-failed.ts';
import { refusalOf, refuseCall } from '../refusal.ts';
import type { Overlay } from './overlay.ts';
import type { ResourceCall } from './resource-call.ts';

const encoder = new TextEncoder();
const json: MediaType = { type: 'application/json', parameters: new Map() };

const noRequest: Request = {
  method: '',
  target: '',
  version: '1.1',
  fields: readRequestFields([]),
  rawFields: [],
  readContent: async () => ({ ok: true, bytes: new Uint8Array() }),
  peer: '',
  id: '',
};

/** @param captures the id of a member */
export function askOf(principal: Principal, captures: readonly string[]): Ask {
  return {
    request: noRequest,
    captures,
    query: undefined,
    preferences: noPreferences,
    principal,
    party: '',
    known: undefined,
    now: 0,
    companions: [],
  };
}

/** Parses content as the operation would parse it as JSON. @throws ResourceRefused */
export async function contentOf<C>(
  operation: Pick<Operation<never, C>, 'understand'>,
  ask: Ask,
  content: string,
): Promise<C | undefined> {
  const understood = await operation.understand?.(ask, encoder.encode(content), json);
  if (understood?.ok === false) throw refusalOf(understood.problem);
  return understood?.value;
}

/**
 * Proposes and performs the operation.
 * @throws ResourceRefused
 */
async function carryOut<S extends Standing, C, P extends Proposal>(
  operation: Operation<S, C, P>,
  ask: Ask,
  standing: S,
  content: C | undefined,
): Promise<Made> {
  const proposal = await operation.propose?.(ask, standing, content);
  if (proposal !== undefined && proposal.problem !== null) throw refusalOf(proposal.problem);
  const result = await operation.act?.(ask, standing, proposal);
  if (result !== undefined && 'made' in result) return result.made;
  if (result !== undefined && 'refused' in result) throw refusalOf(result.refused);
  // Writes of one handler run in turn, so nothing can come between its read and its write.
  throw refuseCall('internal');
}

// One write of a handler, by the operation of POST, PUT, PATCH or DELETE (§4.4 to §4.7).

export type WriteCall = Extract<ResourceCall, { do: 'create' | 'replace' | 'update' | 'delete' }>;

const ownerCharactersMax = 255;

type Writer = {
  readonly principal: Principal;
  /** The owner of what is created without one; null: none. */
  readonly owner: string | null;
};

/**
 * @param served over the store that keeps the writes
 * @returns the representation; undefined for a deletion
 * @throws ResourceRefused
 */
export async function writeResource(
  served: Served,
  writer: Writer,
  call: WriteCall,
): Promise<string | undefined> {
  const { principal } = writer;
  if (call.do === 'create') return create(served, writer, call);
  const ask = askOf(principal, [idOf(call.id)]);
  if (call.do === 'delete') {
    const operation = removeOperation(served);
    await carryOut(operation, ask, await existing(operation, ask), undefined);
    return undefined;
  }
  if (call.do === 'update') {
    const operation = patchOperation(served);
    const standing = await existing(operation, ask);
    const content = await contentOf(operation, ask, textOf(call.patch));
    return (await carryOut(operation, ask, standing, content)).doc ?? undefined;
  }
  const operation = replaceOperation({ ...served, owner: writer.owner });
  const standing = served.collection.putCreates
    ? await operation.standing(ask)
    : await existing(operation, ask);
  const content = await contentOf(operation, ask, textOf(call.fields));
  return (await carryOut(operation, ask, standing, content)).doc ?? undefined;
}

async function create(
  served: Served,
  { principal, owner: ofCaller }: Writer,
  { id, owner, fields }: Extract<WriteCall, { do: 'create' }>,
): Promise<string | undefined> {
  const owned: Served = { ...served, owner: owner === undefined ? ofCaller : ownerOf(owner) };
  if (id === undefined) {
    const operation = createOperation(owned);
    const ask = askOf(principal, []);
    const content = await contentOf(operation, ask, textOf(fields));
    return (await carryOut(operation, ask, await operation.standing(ask), content)).doc ?? undefined;
  }
  if (!served.collection.putCreates) throw refuseCall('field_unpatchable', 'the server assigns the ids');
  const operation = replaceOperation(owned);
  const ask = askOf(principal, [idOf(id)]);
  const standing = await operation.standing(ask);
  if (standing.exists)
    throw refuseCall('precondition_failed', `a document already has the id ${JSON.stringify(id)}`);
  const content = await contentOf(operation, ask, textOf(fields));
  return (await carryOut(operation, ask, standing, content)).doc ?? undefined;
}

async function existing(
  operation: Pick<Operation<MemberStanding>, 'standing'>,
  ask: Ask,
): Promise<MemberStanding> {
  const standing = await operation.standing(ask);
  if (standing.exists) return standing;
  throw refuseCall('not_found', `no document has the id ${JSON.stringify(standing.id)}`);
}

/** Checked at run time, because handlers may be plain JavaScript. */
function idOf(id: unknown): string {
  if (typeof id === 'string' && id.isWellFormed() && !id.includes('\0')) return id;
  throw refuseCall('validation_failed', 'an id must be a string');
}

function ownerOf(owner: unknown): string {
  const isId =
    typeof owner === 'string' &&
    owner.length > 0 &&
    owner.length <= ownerCharactersMax &&
    owner.isWellFormed() &&
    !owner.includes('\0');
  if (isId) return owner;
  throw refuseCall('validation_failed', `an owner must be a string of 1 to ${ownerCharactersMax} characters`);
}

/** Returns the JSON text of a value; threads send JSON text already. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
}

// A list for a handler: what a QUERY with this JSON content would find (§4.9) once the unit is committed. Each resource in it is then
// read by its id, so that it is guarded against changes like any read if the function writes it.

/** The JSON text of a query for the largest page that lists give. */
export function largestPage(query: unknown, { listLimitMax }: Pick<QueryLimits, 'listLimitMax'>): string {
  return JSON.stringify({ ...(JSON.parse(textOf(query)) as object), limit: listLimitMax });
}

/**
 * @param overlay has the writes of the function
 * @param query the members of a JSON query, or their text
 * @returns JSON: `{"items": [...], "nextCursor"}`
 * @throws ResourceRefused
 */
export async function listPage(
  { listing, collection, turns }: Served,
  overlay: Pick<Overlay, 'store' | 'hasWritten'>,
  { principal, now }: Pick<Ask, 'principal' | 'now'>,
  query: unknown,
): Promise<string> {
  const { mediaType, text, compile } = readQueryText('application/json', textOf(query ?? {}));
  const prepared = listing.prepare(`${mediaType} ${text}`, { principal, now }, (target) =>
    compile(text, target, listing.limits),
  );
  if ('faults' in prepared) throw refusalOf(queryProblem(prepared.faults));
  const position = listing.position(prepared);
  if (position === undefined) throw refusalOf(alteredCursor);
  const { store } = overlay;
  const tables = [collection.name, ...tablesOf(prepared.asked.filter)];
  const written = tables.find((table) => overlay.hasWritten(table));
  if (prepared.asked.aggregation !== undefined) {
    if (written !== undefined) throw new FunctionFailed(`${aggregatesCommitted} ${written}`);
    return groupsPage(() => listing.page(prepared, principal, position, { party: '' }));
  }
  const { ids, nextCursor } = idsIn(
    written !== undefined
      ? await listing.pageFrom(store, prepared, principal, position)
      : await listing.page(prepared, principal, position, { party: '' }),
  );
  const docs: string[] = [];
  for (let at = 0; at < ids.length; at += readsPerTurn) {
    await turns.nextOfBegun();
    const some = ids.slice(at, at + readsPerTurn);
    const rows = await Promise.all(some.map((id) => store.read(collection.name, id)));
    for (const row of rows) if (row !== undefined && row.deletedAt === null) docs.push(row.doc);
  }
  return `{"items":[${docs.join(',')}],"nextCursor":${JSON.stringify(nextCursor)}}`;
}

const aggregatesCommitted =
  'aggregates are of committed documents: call aggregate before the function writes';

async function groupsPage(read: () => MaybePromise<ListPage>): Promise<string> {
  try {
    return (await read()).body.toString();
  } catch (error) {
    if (error instanceof GroupsExceeded) throw refuseCall('query_unprocessable', error.message);
    throw error;
  }
}

/** Reads between which others have a turn: 5 ms of the embedded store, and a statement on PostgreSQL. */
const readsPerTurn = 250;

/** The ids of a page, so that its text is released before other requests take their turns. */
function idsIn({ body }: Pick<ListPage, 'body'>): Listed {
  const { items, nextCursor } = JSON.parse(body.toString()) as ListedPage;
  return { ids: items.map(({ id }) => id), nextCursor };
}

type Listed = { readonly ids: readonly string[]; readonly nextCursor: string | null };

type ListedPage = { readonly items: readonly { readonly id: string }[]; readonly nextCursor: string | null };
