/**
 * `/users`: accounts as a collection (§5.1). Administrators list, make and change them; an account reads, renames and deletes itself.
 * Roles, scopes and whatever else decides what it may do are for administrators alone (`readOnly` in collections.ts).
 */

import { revised } from '../../collection/revised.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../collection/serving.ts';
import type { Ask, Operation, Proposal, Resource } from '../../resource.ts';
import { administratorsOnly } from '../administrators-only.ts';
import { usersCollection } from '../collections.ts';
import { accompanyUser, revocationEntry } from './accompany.ts';
import { createUserOperation } from './create.ts';
import { reviseEmail } from './email.ts';
import { createLeavings, type Leavings } from './leavings.ts';
import type { UserResourcesOptions } from './options.ts';
import { setPasswordResource } from './set-password.ts';

export function userResources(options: UserResourcesOptions, serving: Serving): ServedCollection {
  const leavings = createLeavings(serving.store, options.sessions);
  const plain = serveCollection(serving, usersCollection, {
    announced: false,
    accompany: accompanyUser(options, leavings),
    listPermission: administratorsOnly,
    create: createUserOperation,
  });
  return {
    ...plain,
    resources: [
      ...plain.resources.map((resource) => adapted(resource, options, leavings)),
      setPasswordResource(options, plain.served, leavings),
    ],
  };
}

function adapted(resource: Resource, options: UserResourcesOptions, leavings: Leavings): Resource {
  const isBulkDelete = resource.pattern.endsWith('/bulk-delete');
  const operations = [...resource.operations].map(([method, operation]) => {
    if (method === 'PUT' || method === 'PATCH') return [method, revised(operation, reviseEmail)] as const;
    if (method === 'DELETE') return [method, clearing(operation, options, leavings, idOfMember)] as const;
    if (isBulkDelete) return [method, clearing(operation, options, leavings, idsNamed)] as const;
    return [method, operation] as const;
  });
  return { ...resource, operations: new Map(operations) };
}

type IdsOf = (ask: Ask, proposal: Proposal | undefined) => readonly string[];

const idOfMember: IdsOf = ({ captures }) => captures;

const idsNamed: IdsOf = (_ask, proposal) => (proposal as { readonly ids?: readonly string[] })?.ids ?? [];

/** A deletion, and after it the end of what did not fit into its unit. */
function clearing(
  operation: Operation,
  options: UserResourcesOptions,
  leavings: Leavings,
  idsOf: IdsOf,
): Operation {
  const { act } = operation;
  if (act === undefined) throw new Error('a deletion without an act');
  return {
    ...operation,
    act: async (ask, standing, proposal) => {
      const result = await act(ask, standing, proposal);
      if ('made' in result)
        for (const id of idsOf(ask, proposal)) {
          await leavings.clear(id, revocationEntry(options, ask));
        }
      return result;
    },
  };
}
