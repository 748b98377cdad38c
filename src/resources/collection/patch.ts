/**
 * PATCH (§4.6; RFC 5789): a merge patch or a JSON Patch, applied to what stands and committed only if that still
 * stands, so a patch is atomic and two patches never overwrite each other.
 */
import { permission } from '../../model/access.ts';
import type { PatchContent } from '../content/parsed.ts';
import { proposePatch } from '../document/propose.ts';
import type { Ask, Operation, Proposal } from '../resource.ts';
import { commitUnit } from './commit.ts';
import { patchTypes } from './content.ts';
import { madeOf } from './made-of.ts';
import { eventOf, nextRow, timeAfter } from './row.ts';
import type { Served } from './served.ts';
import { type MemberStanding, memberStanding, memberValidators } from './standing.ts';

type Patched = Proposal & { readonly fields: Readonly<Record<string, unknown>> };

export function patchOperation(served: Served): Operation<MemberStanding, PatchContent, Patched> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.update, 'update', principal),
    contentTypes: patchTypes,
    idempotent: true,
    asynchronous: true,
    matchRequired: collection.requireMatch,
    understand: (_ask, bytes, mediaType) => served.parsePatch(bytes, mediaType),
    standing: (ask) => memberStanding(served, ask, 'update'),
    propose: ({ principal }, standing, content) => {
      if (content === undefined || standing.row === undefined) throw new Error('a patch of nothing');
      const current = JSON.parse(standing.row.doc) as Record<string, unknown>;
      const writer = { principal, owner: standing.row.owner };
      const proposed = proposePatch(
        collection,
        served.validator,
        current,
        content,
        served.patchLimits,
        writer,
      );
      return proposed.ok
        ? { problem: null, fields: proposed.fields }
        : { problem: proposed.problem, fields: {} };
    },
    validators: (_ask, standing) => memberValidators(standing),
    act: (ask, standing, proposed) => write(served, ask, standing, proposed?.fields ?? {}),
  };
}

function write(
  served: Served,
  ask: Ask,
  standing: MemberStanding,
  fields: Readonly<Record<string, unknown>>,
) {
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
