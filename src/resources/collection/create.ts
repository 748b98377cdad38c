/**
 * POST to a collection (§4.4): 201 with Location and the representation; the server assigns the id.
 */
import { permission } from '../../model/access.ts';
import type { Principal } from '../../model/principal.ts';
import type { Operation, Standing } from '../resource.ts';
import { commitUnit } from './commit.ts';
import { bodyTypes } from './content.ts';
import { madeOf } from './made-of.ts';
import { type FieldsProposal, proposeFields, understandContent } from './proposing.ts';
import { eventOf, nextRow } from './row.ts';
import type { Served } from './served.ts';
import { closedTo, mayCreate } from './standing.ts';

const open: Standing = { exists: true, visible: true, permitted: true };

export function createOperation(served: Served): Operation<Standing, unknown, FieldsProposal> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.create, 'create', principal),
    contentTypes: bodyTypes(collection),
    answersForms: true,
    idempotent: true,
    asynchronous: true,
    longContent: served.longContent,
    understand: (ask, bytes, mediaType) => understandContent(served, ask, 'create', bytes, mediaType),
    standing: () => open,
    propose: (ask, _standing, content) => {
      const owner = makersOwner(served, ask.principal);
      return proposeFields(served, ask, { change: 'create', id: '', current: undefined, owner }, content);
    },
    // The target of a POST is the collection, and what stands there is its list (RFC 9110 §13.1).
    validators: async (ask) => ({ tag: await served.listing.tag(ask.principal), modifiedAt: null }),
    act: async (ask, _standing, proposal) => {
      const id = served.newId();
      const at = served.clock();
      const row = nextRow(served, {
        id,
        fields: proposal?.fields ?? {},
        owner: makersOwner(served, ask.principal),
        createdAt: at,
        updatedAt: at,
        deletedAt: null,
      });
      if (!mayCreate(served, ask.principal, row)) return closedTo(ask.principal);
      const location = `${served.path}/${id}`;
      const result = { created: true, location, modifiedAt: at, validated: true };
      const made = madeOf(served, ask.principal, row, result);
      const changes = [{ table: collection.name, id, expect: { absent: true }, next: row } as const];
      return commitUnit(served, ask, { changes, events: [eventOf(served, 'created', row, at)] }, made, []);
    },
  };
}

/** Whose a new resource of this collection is. */
export function makersOwner({ owner }: Pick<Served, 'owner'>, principal: Principal): string | null {
  return owner === undefined ? ownerOf(principal) : owner;
}

/** Whose the resources are that a principal makes. */
export function ownerOf(principal: Principal): string | null {
  return principal.kind === 'authenticated' ? principal.id : null;
}
