/**
 * PATCH (§4.6; RFC 5789): a merge patch or a JSON Patch, applied to what stands and committed only if that still
 * stands, so a patch is atomic and two patches never overwrite each other.
 */
import { permission } from '../../model/access.ts';
import type { FieldsOrWritten } from '../document/representation.ts';
import type { Ask, Operation } from '../resource.ts';
import { commitUnit, leaveAsItIs } from './commit.ts';
import { patchTypes } from './content.ts';
import { madeOf } from './made-of.ts';
import { type FieldsProposal, proposeFields, understandContent } from './proposing.ts';
import { eventOf, nextRow, timeAfter } from './row.ts';
import type { Served } from './served.ts';
import { type MemberStanding, memberStanding, memberValidators } from './standing.ts';

export function patchOperation(served: Served): Operation<MemberStanding, unknown, FieldsProposal> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.update, 'update', principal),
    contentTypes: patchTypes,
    idempotent: true,
    asynchronous: true,
    longContent: served.longContent,
    matchRequired: collection.requireMatch,
    understand: (ask, bytes, mediaType) => understandContent(served, ask, 'patch', bytes, mediaType),
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    standing: (ask) => memberStanding(served, ask, 'update'),
    propose: (ask, { id, row }, content) => {
      if (content === undefined || row === undefined) throw new Error('a patch of nothing');
      const { doc: current, owner } = row;
      return proposeFields(served, ask, { change: 'patch', id, current, owner }, content);
    },
    validators: (_ask, standing) => memberValidators(standing),
    act: (ask, standing, proposed) =>
      proposed?.unchanged === true
        ? leaveAsItIs(served, ask, standing, true)
        : write(served, ask, standing, proposed?.fields ?? {}),
  };
}

function write(served: Served, ask: Ask, standing: MemberStanding, fields: FieldsOrWritten) {
  const { id, row } = standing;
  if (row === undefined) throw new Error('a patch of nothing');
  const at = timeAfter(served.clock, row.updatedAt);
  const next = nextRow(served, {
    id,
    fields,
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: at,
    deletedAt: null,
  });
  const location = `${served.path}/${encodeURIComponent(id)}`;
  const result = { created: false, location, modifiedAt: at, validated: true };
  const made = madeOf(served, ask.principal, next, result);
  const changes = [{ table: served.collection.name, id, expect: { rev: row.rev }, next }];
  return commitUnit(served, ask, { changes, events: [eventOf(served, 'updated', next, at)] }, made, [row]);
}
