/**
 * POST {member}/restore (§4.7.9): a softly deleted resource is again as it was, for a caller who may read, delete and create it as it was. The
 * write is a creation for the hooks of the collection and for events; the owner and `createdAt` stay.
 */
import {
  json,
  type OperationDocumentation,
  pascalCase,
  pathParameter,
  representationOf,
} from '../../kernel/documentation.ts';
import type { Ask, Operation, Resource, Result } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import type { MaybePromise, Row } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { madeMembers } from '../document/unpatchable.ts';
import { deprecationFields } from './collection-routes.ts';
import { commitUnit } from './commit.ts';
import { eventOf, nextRow, timeAfter } from './row.ts';
import type { Served } from './served.ts';
import { withStamps } from './stamp.ts';
import { closedTo, deletedStanding, type MemberStanding, mayCreate } from './standing.ts';
import { madeOf } from './write-result.ts';

/** @param served a collection with `softDelete` */
export function restoreResource(served: Served): Resource {
  const { collection } = served;
  return {
    pattern: `${served.path}/{id}/restore`,
    documentation: {
      name: `${pascalCase(collection.name)}Restoration`,
      belongsTo: collection,
      noun: `the restoration of a deleted document of ${collection.name}`,
      tag: collection,
      parameters: [pathParameter('id', 'Id of the document.')],
    },
    operations: new Map([['POST', restoreOperation(served) as Operation]]),
    constantFields: deprecationFields(collection),
    offers: ['application/json'],
  };
}

function documentationOf(collection: Collection): OperationDocumentation {
  return {
    id: `restore${pascalCase(collection.name)}`,
    summary: `Restore a deleted document of ${collection.name}`,
    description:
      'The document, its owner and `createdAt` are those from before its deletion. 404 unless it is softly deleted.',
    member: { collection, action: 'delete' },
    codes: [
      'validation_failed',
      ...(collection.unique.length > 0 ? (['unique_taken'] as const) : []),
      ...(collection.references.length > 0 ? (['reference_missing'] as const) : []),
      ...(collection.hooks?.beforeWrite === undefined ? [] : (['refused_by_application'] as const)),
    ],
    gives: { changed: json(representationOf(collection)) },
  };
}

function restoreOperation(served: Served): Operation<MemberStanding> {
  const { collection } = served;
  return {
    documentation: documentationOf(collection),
    permission: (principal) => permission(collection.access.delete, 'delete', principal),
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    standing: (ask) => deletedStanding(served, ask),
    act: (ask, { id, row, restsOn }) => {
      if (row === undefined) throw new Error('a restoration requires the row of its resource');
      const fields = fieldsOf(row);
      const { missing, invalid } = served.validator.check(fields);
      // The declaration may have changed since the deletion.
      const errors = [...missing, ...invalid];
      if (errors.length > 0) return { refused: { code: 'validation_failed', errors } };
      const { logic } = served;
      const make = (within: Served, own: Ask, after: typeof fields | object) =>
        restore(within, own, { row, fields: after as typeof fields, restsOn });
      if (logic === undefined) return make(served, ask, fields);
      const write = { action: 'create', id, before: undefined, fields } as const;
      return logic.write(served, ask, [write], (within, own, [after = fields]) => make(within, own, after));
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf({ doc }: Row): Fields {
  const made = new Set(madeMembers);
  return Object.fromEntries(Object.entries(JSON.parse(doc) as Fields).filter(([name]) => !made.has(name)));
}

type Restoration = Pick<MemberStanding, 'restsOn'> & { readonly row: Row; readonly fields: Fields };

function restore(served: Served, ask: Ask, { row, fields, restsOn }: Restoration): MaybePromise<Result> {
  const { id } = row;
  const at = timeAfter(served.clock, row.updatedAt);
  const next = nextRow(served, {
    id,
    fields: withStamps(served, ask, fields, { before: row.doc, at }),
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: at,
    deletedAt: null,
  });
  const location = `${served.path}/${encodeURIComponent(id)}`;
  const result = { created: false, location, modifiedAt: at, validated: true };
  const made = madeOf(served, ask.principal, next, result);
  const changes = [{ table: served.collection.name, id, expect: { rev: row.rev }, next }];
  const events = [eventOf(served, 'created', { id, ...next }, at)];
  return whenKnown(mayCreate(served, ask.principal, next), (creation) =>
    creation.permitted
      ? commitUnit(served, ask, { changes, events }, made, [row], [...restsOn, ...creation.restsOn])
      : closedTo(ask.principal),
  );
}
