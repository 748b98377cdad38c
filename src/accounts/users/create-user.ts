/**
 * POST to `/users`: an administrator, or an account that administers others, makes an account. It has no password until one is set or
 * reset; its owner is itself.
 */

import type { ResolvedAccounts } from '../../config/accounts.ts';
import type { Ask, Operation, Proposal, Result, Standing } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { commitUnit, madeOf } from '../../resources/collection/commit.ts';
import { createOperation } from '../../resources/collection/proposing.ts';
import type { NewFields, Revise } from '../../resources/collection/revised.ts';
import { revised } from '../../resources/collection/revised.ts';
import { nextRow } from '../../resources/collection/row.ts';
import type { Served } from '../../resources/collection/served.ts';
import type { FieldsOrWritten } from '../../resources/document/representation.ts';
import type { MaybePromise } from '../../store/store.ts';

export function createUserOperation(
  { users, creation }: Pick<ResolvedAccounts, 'users' | 'creation'>,
  revise: Revise,
): (served: Served) => Operation {
  return (served) => {
    const { answersForms, ...asAnywhere } = createOperation({ ...served, collection: creation }) as Operation;
    const operation: Operation = {
      ...asAnywhere,
      permission: (principal) => permission(users.access.create, 'create', principal),
      act: (ask: Ask, _standing: Standing, proposal: (Proposal & { fields?: NewFields }) | undefined) => {
        const fields = proposal?.fields ?? {};
        const write = { action: 'create', id: `usr_${served.newId()}`, before: undefined, fields } as const;
        const { logic } = served;
        if (logic === undefined) return create(served, ask, write.id, fields);
        return logic.write(served, ask, [write], (within, own, [after = fields]) =>
          create(within, own, write.id, after),
        );
      },
    };
    return revised(answersForms === undefined ? operation : { ...operation, answersForms }, revise);
  };
}

function create(served: Served, ask: Ask, id: string, fields: FieldsOrWritten): MaybePromise<Result> {
  const at = served.clock();
  const times = { createdAt: at, updatedAt: at, deletedAt: null };
  const next = nextRow(served, { id, fields, owner: id, ...times });
  const location = `${served.path}/${id}`;
  const made = madeOf(served, ask.principal, next, {
    ...{ created: true, location, modifiedAt: at, validated: true },
  });
  const changes = [{ table: served.collection.name, id, expect: { absent: true }, next } as const];
  return commitUnit(served, ask, { changes, events: [] }, made, []);
}
