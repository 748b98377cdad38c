/** Stamped fields of a collection (§2.9): members that the server sets from the request that writes, and no client writes. */

/** The principal's id, its tenant, or the time of the write in ISO 8601. */
export type StampValue = 'principal' | 'tenant' | 'time';

export const stampValues: readonly StampValue[] = ['principal', 'tenant', 'time'];

/** @param on `create`: set once; `update`: set by every write, also the one that creates */
export type Stamp = { readonly value: StampValue; readonly on: 'create' | 'update' };

/** The value alone is set at creation. */
export type StampDeclaration = StampValue | { readonly value: StampValue; readonly on?: 'create' | 'update' };

export function resolveStamps(
  declared: Readonly<Record<string, StampDeclaration>> | undefined,
): ReadonlyMap<string, Stamp> | undefined {
  const entries = Object.entries(declared ?? {});
  if (entries.length === 0) return undefined;
  return new Map(
    entries.map(([name, stamp]) => [
      name,
      typeof stamp === 'string'
        ? { value: stamp, on: 'create' }
        : { value: stamp.value, on: stamp.on ?? 'create' },
    ]),
  );
}
