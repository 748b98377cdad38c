/**
 * POST to a collection (§4.4): 201 with Location and the representation; the server assigns the id.
 */
import { permission } from '../../model/access.ts';
import { proposeCreate } from '../document/propose.ts';
import type { Made, Operation, Proposal, Standing } from '../resource.ts';
import { commitUnit } from './commit.ts';
import { bodyTypes, understandBody } from './content.ts';
import { eventOf, nextRow } from './row.ts';
import type { Served } from './served.ts';

type NewFields = Proposal & { readonly fields: Readonly<Record<string, unknown>> };

const open: Standing = { exists: true, visible: true, permitted: true };

export function createOperation(served: Served): Operation<Standing, unknown, NewFields> {
  const { collection } = served;
  return {
    permission: (principal) => permission(collection.access.create, 'create', principal),
    contentTypes: bodyTypes(collection),
    answersForms: true,
    idempotent: true,
    asynchronous: true,
    understand: (_ask, bytes, mediaType) => understandBody(served, bytes, mediaType),
    standing: () => open,
    propose: (_ask, _standing, content) => {
      const proposed = proposeCreate(collection, served.validator, content);
      return proposed.ok
        ? { problem: null, fields: proposed.fields }
        : { problem: proposed.problem, fields: {} };
    },
    // The target of a POST is the collection, and what stands there is its list (RFC 9110 §13.1).
    validators: async (ask) => ({ tag: await served.listing.tag(ask.principal), modifiedAt: null }),
    act: (ask, _standing, proposal) => {
      const id = served.newId();
      const at = served.clock();
      const row = nextRow(served, {
        id,
        fields: proposal?.fields ?? {},
        owner: ask.principal.kind === 'authenticated' ? ask.principal.id : null,
        createdAt: at,
        updatedAt: at,
        deletedAt: null,
      });
      const made: Made = {
        outcome: 'made',
        created: true,
        location: `${served.path}/${id}`,
        doc: row.doc,
        modifiedAt: at,
        validated: true,
      };
      const changes = [{ table: collection.name, id, expect: { absent: true }, next: row } as const];
      return commitUnit(served, ask, { changes, events: [eventOf(served, 'created', row, at)] }, made, []);
    },
  };
}
