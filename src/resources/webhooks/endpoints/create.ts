/**
 * POST to `/endpoints`: makes an endpoint and its secret, which is shown this once and when it is rotated. The answer is therefore kept
 * nowhere: no Idempotency-Key, no respond-async, and return=minimal leaves nothing out.
 *
 * Beside the secret stand the scopes of the credential: the endpoint is told nothing that one could not have read.
 */

import { keptRow } from '../../../store/kept-row.ts';
import type { Change } from '../../../store/store.ts';
import { makeEndpointSecret } from '../../../webhooks/outbound/secret-text.ts';
import { type EndpointSecrets, endpointSecretsTable } from '../../../webhooks/outbound/tables.ts';
import { commitUnit } from '../../collection/commit.ts';
import { createOperation } from '../../collection/create.ts';
import { madeOf } from '../../collection/made-of.ts';
import { type NewFields, type Revise, revised } from '../../collection/revised.ts';
import { nextRow } from '../../collection/row.ts';
import type { Served } from '../../collection/served.ts';
import { closedTo } from '../../collection/standing.ts';
import type { Ask, Operation, Proposal, Result, Standing } from '../../resource.ts';
import type { EndpointResourcesOptions } from './options.ts';

type Fields = Proposal & { readonly fields?: NewFields };

export function createEndpointOperation(
  options: EndpointResourcesOptions,
  served: Served,
  revise: Revise,
): Operation {
  const operation: Operation = {
    ...(createOperation(served) as Operation),
    answersForms: false,
    idempotent: false,
    asynchronous: false,
    reports: true,
    act: (ask: Ask, _standing: Standing, proposal: Fields | undefined) =>
      create(options, served, ask, proposal?.fields ?? {}),
  };
  return revised(operation, revise);
}

async function create(
  { directory, random, endpointsMax }: EndpointResourcesOptions,
  served: Served,
  ask: Ask,
  fields: NewFields,
): Promise<Result> {
  const { principal } = ask;
  if (principal.kind !== 'authenticated') return closedTo(principal);
  if (hasAtLeast(directory.all(), endpointsMax)) return { refused: { code: 'endpoints_exhausted' } };
  const id = `ep_${served.newId()}`;
  const at = served.clock();
  const owner = principal.id;
  const row = nextRow(served, { id, fields, owner, createdAt: at, updatedAt: at, deletedAt: null });
  const secret = makeEndpointSecret(random);
  const secrets: EndpointSecrets = { secrets: [{ secret, until: null }], scopes: [...principal.scopes] };
  const expect = { absent: true } as const;
  const companions: readonly Change[] = [
    {
      table: endpointSecretsTable,
      id,
      expect,
      next: keptRow(JSON.stringify(secrets), owner, at, at),
    },
    ...directory.generationChanges(),
  ];
  const location = `${served.path}/${id}`;
  const plain = madeOf(served, principal, row, {
    created: true,
    location,
    modifiedAt: at,
    validated: true,
  });
  const made = { ...plain, doc: JSON.stringify({ ...JSON.parse(row.doc), secret }) };
  const accompanied: Served = { ...served, accompany: () => ({ changes: companions }) };
  const changes = [{ table: served.collection.name, id, expect, next: row }];
  return commitUnit(accompanied, ask, { changes, events: [] }, made, []);
}

function hasAtLeast(things: Iterable<unknown>, count: number): boolean {
  let left = count;
  for (const _thing of things) {
    left -= 1;
    if (left <= 0) return true;
  }
  return count <= 0;
}
