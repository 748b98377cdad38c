/**
 * POST to `/endpoints`: makes an endpoint and its secret, which is shown this once and when it is rotated. The answer is therefore kept
 * nowhere: no Idempotency-Key, no respond-async, and return=minimal leaves nothing out.
 *
 * Beside the secret stand the scopes of the credential: the endpoint is told nothing that one could not have read.
 */

import type { Problem } from '../../../http/problem.ts';
import { type Authenticated, isAdministrator } from '../../../model/principal.ts';
import { keptRow } from '../../../store/kept-row.ts';
import type { Change } from '../../../store/store.ts';
import { type Headers, withHeaders } from '../../../webhooks/outbound/endpoint-headers.ts';
import { makeEndpointSecret } from '../../../webhooks/outbound/secret-text.ts';
import { endpointSecretsTable } from '../../../webhooks/outbound/tables.ts';
import { commitUnit } from '../../collection/commit.ts';
import { createOperation } from '../../collection/create.ts';
import { madeOf } from '../../collection/made-of.ts';
import { type FieldsProposal, type NewFields, type Revise, revised } from '../../collection/revised.ts';
import { nextRow } from '../../collection/row.ts';
import type { Served } from '../../collection/served.ts';
import { closedTo } from '../../collection/standing.ts';
import type { Ask, Operation, Result, Standing } from '../../resource.ts';
import type { EndpointResourcesOptions } from './options.ts';

export function createEndpointOperation(
  options: EndpointResourcesOptions,
  served: Served,
  revise: Revise,
): Operation {
  const making = new Making(options);
  const operation: Operation = {
    ...(createOperation(served) as Operation),
    answersForms: false,
    idempotent: 'sealed',
    asynchronous: false,
    reports: true,
    act: (ask: Ask, _standing: Standing, proposal: FieldsProposal | undefined) =>
      create(options, making, served, ask, proposal),
  };
  return revised(operation, revise);
}

async function create(
  options: EndpointResourcesOptions,
  making: Making,
  served: Served,
  ask: Ask,
  proposal: FieldsProposal | undefined,
): Promise<Result> {
  const { principal } = ask;
  if (principal.kind !== 'authenticated') return closedTo(principal);
  const refused = making.refusal(principal);
  if (refused !== undefined) return { refused };
  return making.during(principal.id, () => commitNew(options, served, ask, principal, proposal));
}

async function commitNew(
  { directory, random }: EndpointResourcesOptions,
  served: Served,
  ask: Ask,
  principal: Authenticated,
  proposal: FieldsProposal | undefined,
): Promise<Result> {
  const fields: NewFields = proposal?.fields ?? {};
  const id = `ep_${served.newId()}`;
  const at = served.clock();
  const owner = principal.id;
  const row = nextRow(served, { id, fields, owner, createdAt: at, updatedAt: at, deletedAt: null });
  const secret = makeEndpointSecret(random);
  const plainSecrets = { secrets: [{ secret, until: null }], scopes: [...principal.scopes] };
  const headers = proposal?.secret as Headers | undefined;
  const secrets = withHeaders(plainSecrets, headers, String(fields['url']));
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

type MakingOptions = Pick<EndpointResourcesOptions, 'directory' | 'endpointsMax' | 'endpointsPerOwnerMax'>;

/** Endpoints that are being made count as well, so that requests at once do not pass the limit together. */
class Making {
  readonly #options: MakingOptions;
  readonly #byOwner = new Map<string, number>();
  #all = 0;

  constructor(options: MakingOptions) {
    this.#options = options;
  }

  refusal(principal: Authenticated): Problem | undefined {
    const { directory, endpointsMax, endpointsPerOwnerMax } = this.#options;
    if (directory.size() + this.#all >= endpointsMax) return exhausted(endpointsMax, 'COMITY_ENDPOINTS_MAX');
    if (isAdministrator(principal)) return undefined;
    const own = directory.countOf(principal.id) + (this.#byOwner.get(principal.id) ?? 0);
    if (own < endpointsPerOwnerMax) return undefined;
    return exhausted(endpointsPerOwnerMax, 'COMITY_ENDPOINTS_PER_OWNER_MAX');
  }

  async during<T>(owner: string, work: () => Promise<T>): Promise<T> {
    this.#count(owner, 1);
    try {
      return await work();
    } finally {
      this.#count(owner, -1);
    }
  }

  #count(owner: string, change: 1 | -1): void {
    this.#all += change;
    const own = (this.#byOwner.get(owner) ?? 0) + change;
    if (own === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, own);
  }
}

function exhausted(limit: number, setting: string): Problem {
  const message = `the limit of ${limit.toLocaleString('en')} endpoints is reached (${setting})`;
  return { code: 'endpoints_exhausted', message };
}
