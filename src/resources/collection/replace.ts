/**
 * PUT (§4.5): replaces the whole resource, or creates it where the collection says so. The answer carries no
 * validators, because the server adds members to what was sent (RFC 9110 §9.3.4).
 */
import { permission } from '../../model/access.ts';
import { isClientId } from '../../model/id.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { FieldsOrWritten } from '../document/representation.ts';
import type { Ask, Operation, Result } from '../resource.ts';
import { commitUnit, leaveAsItIs } from './commit.ts';
import { bodyTypes } from './content.ts';
import { makersOwner } from './create.ts';
import { madeOf } from './made-of.ts';
import { type FieldsProposal, proposeFields, understandContent } from './proposing.ts';
import { eventOf, nextRow, timeAfter } from './row.ts';
import type { Served } from './served.ts';
import { closedTo, type MemberStanding, mayCreate, memberStanding, memberValidators } from './standing.ts';

export function replaceOperation(served: Served): Operation<MemberStanding, unknown, FieldsProposal> {
  const { collection } = served;
  return {
    permission: (principal) => {
      const update = permission(collection.access.update, 'update', principal);
      if (!collection.putCreates || update === 'granted') return update;
      const create = permission(collection.access.create, 'create', principal);
      return update === 'denied' && create === 'denied' ? 'denied' : 'depends';
    },
    contentTypes: bodyTypes(collection),
    asynchronous: true,
    longContent: served.longContent,
    createsHere: collection.putCreates,
    matchRequired: collection.requireMatch,
    understand: (ask, bytes, mediaType) => understandContent(served, ask, 'replace', bytes, mediaType),
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    standing: (ask) => memberStanding(served, ask, 'update'),
    propose: (ask, standing, content) => proposal(served, ask, standing, content),
    validators: (_ask, standing) => memberValidators(standing),
    act: async (ask, standing, proposed) =>
      proposed?.unchanged === true
        ? leaveAsItIs(served, ask, standing, false)
        : put(served, ask, standing, proposed?.fields ?? {}),
  };
}

function proposal(
  served: Served,
  ask: Ask,
  standing: MemberStanding,
  content: unknown,
): MaybePromise<FieldsProposal> {
  if (!standing.exists && !isClientId(standing.id)) {
    const message = 'an id chosen by the client has 1 to 255 letters, digits, ".", "_", "~" or "-"';
    return { problem: { code: 'validation_failed', errors: [{ pointer: '/id', message }] }, fields: {} };
  }
  const current = standing.exists ? standing.row?.doc : undefined;
  const owner = current === undefined ? makersOwner(served, ask.principal) : (standing.row?.owner ?? null);
  return proposeFields(served, ask, { change: 'replace', id: standing.id, current, owner }, content);
}

function put(
  served: Served,
  ask: Ask,
  standing: MemberStanding,
  fields: FieldsOrWritten,
): Result | Promise<Result> {
  const { id, row } = standing;
  const replaced = standing.exists ? row : undefined;
  const at = timeAfter(served.clock, row?.updatedAt ?? 0);
  const next = nextRow(served, {
    id,
    fields,
    owner: replaced === undefined ? makersOwner(served, ask.principal) : replaced.owner,
    createdAt: replaced?.createdAt ?? at,
    updatedAt: at,
    deletedAt: null,
  });
  const created = replaced === undefined;
  if (created && !mayCreate(served, ask.principal, next)) return closedTo(ask.principal);
  const location = `${served.path}/${encodeURIComponent(id)}`;
  const made = madeOf(served, ask.principal, next, { created, location, modifiedAt: at, validated: false });
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  const events = [eventOf(served, made.created ? 'created' : 'updated', next, at)];
  const changes = [{ table: served.collection.name, id, expect, next }];
  return commitUnit(served, ask, { changes, events }, made, [row]);
}
