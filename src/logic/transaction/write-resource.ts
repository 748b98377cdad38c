/** One write of a handler, by the operation of POST, PUT, PATCH or DELETE (§4.4 to §4.7). */

import type { Ask, Operation } from '../../kernel/resource.ts';
import type { Principal } from '../../model/principal.ts';
import { createOperation, patchOperation, replaceOperation } from '../../resources/collection/proposing.ts';
import { removeOperation } from '../../resources/collection/remove.ts';
import type { Served } from '../../resources/collection/served.ts';
import type { MemberStanding } from '../../resources/collection/standing.ts';
import { askOf, carryOut, contentOf, refuse } from './asking.ts';
import type { ResourceCall } from './resource-call.ts';

export type WriteCall = Extract<ResourceCall, { do: 'create' | 'replace' | 'update' | 'delete' }>;

const ownerCharactersMax = 255;

export type Writer = {
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
  if (!served.collection.putCreates) throw refuse('field_unpatchable', 'the server assigns the ids');
  const operation = replaceOperation(owned);
  const ask = askOf(principal, [idOf(id)]);
  const standing = await operation.standing(ask);
  if (standing.exists)
    throw refuse('precondition_failed', `a document already has the id ${JSON.stringify(id)}`);
  const content = await contentOf(operation, ask, textOf(fields));
  return (await carryOut(operation, ask, standing, content)).doc ?? undefined;
}

async function existing(
  operation: Pick<Operation<MemberStanding>, 'standing'>,
  ask: Ask,
): Promise<MemberStanding> {
  const standing = await operation.standing(ask);
  if (standing.exists) return standing;
  throw refuse('not_found', `no document has the id ${JSON.stringify(standing.id)}`);
}

/** Checked at run time, because handlers may be plain JavaScript. */
function idOf(id: unknown): string {
  if (typeof id === 'string' && id.isWellFormed() && !id.includes('\0')) return id;
  throw refuse('validation_failed', 'an id must be a string');
}

function ownerOf(owner: unknown): string {
  const isId =
    typeof owner === 'string' &&
    owner.length > 0 &&
    owner.length <= ownerCharactersMax &&
    owner.isWellFormed() &&
    !owner.includes('\0');
  if (isId) return owner;
  throw refuse('validation_failed', `an owner must be a string of 1 to ${ownerCharactersMax} characters`);
}

/** Returns the JSON text of a value; threads send JSON text already. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
}
