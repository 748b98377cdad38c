/**
 * Quotas of files: octets that a collection, a tenant and a principal may have together. What is used is the sum over their rows, uploads
 * under way included by the length that they announce; it is looked up only where a quota is set.
 */
import type { Problem } from '../http/problem.ts';
import type { Field } from '../model/field.ts';
import { allOf, type Filter } from '../model/filter.ts';
import { callerOf, isAdministrator, type Principal, tenantOf } from '../model/principal.ts';
import type { Services } from '../store/capabilities.ts';
import { fileFields, filesTable } from './file-rows.ts';

export type Quotas = {
  /** The refusal of a file of so many octets; undefined: there is room. */
  excess(file: {
    readonly principal: Principal;
    readonly collection: string;
    readonly bytes: number;
    /** Octets of the file that its row counts already. */
    readonly counted?: number;
  }): Promise<Problem | undefined>;
  /** The refusal of uploads that the collection does not count before a document takes them. */
  collectionExcess(collection: string, bytes: number): Promise<Problem | undefined>;
};

type Quota = {
  readonly of: string;
  readonly field: Field;
  readonly value: string;
  readonly bytesMax: number;
};

export function createQuotas({ store, settings }: Pick<Services, 'store' | 'settings'>): Quotas {
  const { filesCollectionBytesMax, filesTenantBytesMax, filesPrincipalBytesMax } = settings;
  const ofCollection = (value: string): Quota => ({
    ...{ of: 'collection', field: fileFields.collectionField, value },
    bytesMax: filesCollectionBytesMax,
  });
  const excessOf = async (quota: Quota, bytes: number): Promise<Problem | undefined> => {
    if (quota.bytesMax === 0 || quota.value === '') return undefined;
    const used = await usedBytes(store, quota);
    return used + bytes > quota.bytesMax ? refusal(quota, used) : undefined;
  };
  return {
    async collectionExcess(collection, bytes) {
      return bytes === 0 ? undefined : excessOf(ofCollection(collection), bytes);
    },
    async excess({ principal, collection, bytes, counted = 0 }) {
      const quotas: readonly Quota[] = [
        ofCollection(collection),
        {
          of: 'tenant',
          field: fileFields.tenantField,
          value: tenantOf(principal) ?? '',
          bytesMax: filesTenantBytesMax,
        },
        {
          ...{ of: 'principal', field: fileFields.principalField, value: callerOf(principal) },
          bytesMax: isAdministrator(principal) ? 0 : filesPrincipalBytesMax,
        },
      ];
      for (const quota of quotas) {
        const problem = await excessOf(quota, bytes - counted);
        if (problem !== undefined) return problem;
      }
      return undefined;
    },
  };
}

function refusal({ of, bytesMax }: Quota, bytesUsed: number): Problem {
  return {
    code: 'quota_exceeded',
    message: `the files of this ${of} have ${bytesUsed} of ${bytesMax} bytes, and this one does not fit`,
    context: { quota: of, bytesMax, bytesUsed },
  };
}

function usedBytes(store: Pick<Services['store'], 'aggregate'>, { field, value }: Quota): Promise<number> {
  return bytesOf(
    store,
    allOf([
      { op: 'eq', field, value },
      { op: 'ne', field: fileFields.stateField, value: 'removed' },
    ]),
  );
}

/** The sum over the rows of files that pass the filter. */
export async function bytesOf(store: Pick<Services['store'], 'aggregate'>, filter: Filter): Promise<number> {
  const measures = [{ of: 'sum', field: fileFields.bytesField }] as const;
  const found = await store.aggregate({
    ...{ table: filesTable, filter, groupBy: [], measures, groupsMax: 1, bytesMax: 1024 },
  });
  if (found.outcome !== 'groups') throw new Error('the sum over the rows of files has one group');
  const [sum] = found.groups[0]?.values ?? [];
  return typeof sum === 'number' ? sum : 0;
}
