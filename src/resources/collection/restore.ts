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
import type { Ask, Operation, Resource } from '../../kernel/resource.ts';
import { changeOctets } from '../../memory/work-rules.ts';
import { permission } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import type { Members } from '../../model/json-value.ts';
import type { Row } from '../../store/store.ts';
import { withInstants } from '../document/propose.ts';
import { madeMembers } from '../document/unpatchable.ts';
import { deprecationFields } from './collection-routes.ts';
import { commitFields } from './proposing.ts';
import type { Served } from './served.ts';
import { deletedStanding, type MemberStanding } from './standing.ts';

/** @param served a collection with `softDelete` */
export function restoreResource(served: Served): Resource {
  const { collection } = served;
  return {
    pattern: `${served.path}/{id}/restore`,
    documentation: {
      name: `${pascalCase(collection.name)}Restoration`,
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
    makesOf: ({ row }) => changeOctets(row),
    act: (ask, { id, row, restsOn }) => {
      if (row === undefined) throw new Error('a restoration requires the row of its resource');
      const fields = withInstants(served.validator, fieldsOf(row));
      const { missing, invalid } = served.validator.check(fields);
      // The declaration may have changed since the deletion.
      const errors = [...missing, ...invalid];
      if (errors.length > 0) return { refused: { code: 'validation_failed', errors } };
      const { logic } = served;
      const make = (within: Served, own: Ask, after: typeof fields | object) =>
        commitFields(within, own, { row, restsOn, fields: after as typeof fields, event: 'created' });
      if (logic === undefined) return make(served, ask, fields);
      const write = { action: 'create', id, before: undefined, fields } as const;
      return logic.write(served, ask, [write], (within, own, [after = fields]) => make(within, own, after));
    },
  };
}

function fieldsOf({ doc }: Row): Members {
  const made = new Set(madeMembers);
  return Object.fromEntries(Object.entries(JSON.parse(doc) as Members).filter(([name]) => !made.has(name)));
}
