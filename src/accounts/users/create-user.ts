/**
 * POST to `/users`: an administrator makes an account. It has no password until one is set or reset; its owner is itself.
 */

import type { Ask, Made, Operation, Proposal, Standing } from '../../kernel/resource.ts';
import { commitUnit } from '../../resources/collection/commit.ts';
import { createOperation } from '../../resources/collection/proposing.ts';
import { type NewFields, revised } from '../../resources/collection/revised.ts';
import { nextRow } from '../../resources/collection/row.ts';
import type { Served } from '../../resources/collection/served.ts';
import { administratorsOnly } from '../administrators-only.ts';
import { reviseEmail } from './change-email.ts';

export function createUserOperation(served: Served): Operation {
  const { answersForms, ...asAnywhere } = createOperation(served) as Operation;
  const operation: Operation = {
    ...asAnywhere,
    permission: administratorsOnly,
    act: (ask: Ask, _standing: Standing, proposal: (Proposal & { fields?: NewFields }) | undefined) => {
      const id = `usr_${served.newId()}`;
      const at = served.clock();
      const next = nextRow(served, {
        id,
        fields: proposal?.fields ?? {},
        owner: id,
        createdAt: at,
        updatedAt: at,
        deletedAt: null,
      });
      const made: Made = {
        outcome: 'made',
        created: true,
        location: `${served.path}/${id}`,
        doc: next.doc,
        modifiedAt: at,
        validated: true,
      };
      const changes = [{ table: served.collection.name, id, expect: { absent: true }, next } as const];
      return commitUnit(served, ask, { changes, events: [] }, made, []);
    },
  };
  return revised(answersForms === undefined ? operation : { ...operation, answersForms }, reviseEmail);
}
