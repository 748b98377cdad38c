/**
 * POST to `/endpoints`: creates an endpoint and its secret, which is shown only now and after a rotation. So the
 * response is not stored in clear: no respond-async, a sealed record for an Idempotency-Key, and return=minimal omits
 * nothing.
 *
 * The scopes of the credential are stored beside the secret: the endpoint receives only what the credential could have
 * read.
 */
import type { Problem } from '../../../http/problem.ts';
import { json, type OperationDocumentation } from '../../../kernel/documentation.ts';
import type { Ask, Operation, Result, Standing } from '../../../kernel/resource.ts';
import { type Authenticated, isAdministrator } from '../../../model/principal.ts';
import { commitUnit, madeOf } from '../../../resources/collection/commit.ts';
import { closedTo } from '../../../resources/collection/member.ts';
import { nextRow } from '../../../resources/collection/row.ts';
import type { Served } from '../../../resources/collection/served-collection.ts';
import {
  createOperation,
  type NewFields,
  type Revise,
  type RevisedProposal,
  revised,
} from '../../../resources/collection/write-operations.ts';
import { type Change, keptRow } from '../../../store/store.ts';
import { makeEndpointSecret } from '../../secrets.ts';
import type { SendingParts } from '../sending-parts.ts';
import { endpointSecretsTable } from '../sending-tables.ts';
import { keepingRights, ownerAfter } from './endpoint-owner.ts';
import { type Headers, withHeaders } from './revise-endpoint.ts';
import { madeEndpoint } from './rotate-secret.ts';

export function createEndpointOperation(parts: SendingParts, served: Served, revise: Revise): Operation {
  const making = new Making(parts);
  const operation: Operation = {
    ...(createOperation(served) as Operation),
    answersForms: false,
    idempotent: 'sealed',
    asynchronous: false,
    reports: true,
    act: (ask: Ask, _standing: Standing, proposal: RevisedProposal | undefined) =>
      create(parts, making, served, ask, proposal),
  };
  return revised(operation, revise);
}

/** The differences from the POST to any collection. */
export function createDocumentation(standard: OperationDocumentation): OperationDocumentation {
  return {
    ...standard,
    description:
      'Only this response shows the secret; a repeated request with the same Idempotency-Key and the same credential shows it again. `mode` requires the scheme `timestamped`. For a caller that belongs to a tenant, `tenant` is that tenant.',
    gives: { created: json(madeEndpoint.schema, madeEndpoint.example) },
    madeFields: ['ETag', 'Last-Modified'],
    codes: [...(standard.codes ?? []), 'endpoints_exhausted'],
  };
}

async function create(
  parts: SendingParts,
  making: Making,
  served: Served,
  ask: Ask,
  proposal: RevisedProposal | undefined,
): Promise<Result> {
  const { principal } = ask;
  if (principal.kind !== 'authenticated') return closedTo(principal);
  const refused = making.refusal(principal);
  if (refused !== undefined) return { refused };
  return making.during(principal.id, () => commitNew(parts, served, ask, principal, proposal));
}

async function commitNew(
  { random }: SendingParts,
  served: Served,
  ask: Ask,
  principal: Authenticated,
  proposal: RevisedProposal | undefined,
): Promise<Result> {
  const fields: NewFields = proposal?.fields ?? {};
  const id = `ep_${served.newId()}`;
  const at = served.clock();
  const { scopes } = principal;
  const owner = ownerAfter(principal.id, tenantOfFields(fields), { scopes: [...scopes] }, principal);
  const row = nextRow(served, { id, fields, owner, createdAt: at, updatedAt: at, deletedAt: null });
  const secret = makeEndpointSecret(random);
  const newSecrets = { secrets: [{ secret, until: null }], scopes: [...scopes] };
  const plainSecrets = keepingRights(newSecrets, principal.id, owner);
  const headers = proposal?.secret as Headers | undefined;
  const secrets = withHeaders(plainSecrets, headers, String(fields.url));
  const expect = { absent: true } as const;
  const companions: readonly Change[] = [
    {
      table: endpointSecretsTable,
      id,
      expect,
      next: keptRow(JSON.stringify(secrets), owner, at, at),
    },
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

function tenantOfFields({ tenant }: NewFields): string | undefined {
  return typeof tenant === 'string' ? tenant : undefined;
}

/** Counts endpoints that are being created too, so that concurrent requests cannot exceed the limit together. */
class Making {
  readonly #directory: SendingParts['directory'];
  readonly #settings: SendingParts['settings'];
  readonly #byOwner = new Map<string, number>();
  #all = 0;

  constructor({ directory, settings }: SendingParts) {
    this.#directory = directory;
    this.#settings = settings;
  }

  refusal(principal: Authenticated): Problem | undefined {
    const directory = this.#directory;
    const { endpointsMax, endpointsPerOwnerMax } = this.#settings;
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
