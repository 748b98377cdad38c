/**
 * The slowest lists that this process has read lately, by their shape: what they filter and sort by, without values, and how they were read.
 * A list is noted only if it took `slowListMs`, so that fast ones cost two looks at the clock.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import type { Filter } from '../../model/filter.ts';
import type { Asked } from '../query/list-query.ts';

export type SlowList = {
  /** The collection, or another list. */
  readonly list: string;
  /** Operators and fields, without values; empty: all documents. */
  readonly filter: string;
  readonly sort: string;
  /** As of `Comity-Plan`, of the latest read. */
  readonly plan: string;
  readonly words: string;
  readonly count: number;
  /** Reads that ended with an error, such as a timeout. */
  readonly failures: number;
  /** The median, within a factor of 1.5. */
  readonly p50Ms: number;
  readonly maxMs: number;
  readonly firstAt: string;
  readonly lastAt: string;
};

export type Read = {
  readonly list: string;
  readonly asked: Pick<Asked, 'filter' | 'sort' | 'aggregation'>;
  /** The value of `Comity-Plan`. */
  readonly plan: string;
  readonly durationMs: number;
  readonly hasFailed: boolean;
};

type Known = {
  readonly shape: Pick<SlowList, 'list' | 'filter' | 'sort' | 'plan'>;
  words: string;
  failures: number;
  maxMs: number;
  readonly firstAt: number;
  lastAt: number;
  /** Numbers of reads by time: each bucket ends at 1.41 times the end of the one before. */
  readonly buckets: Uint32Array;
};

/** The last bucket has what took longer than half a minute. */
const bucketsCount = 32;
/** A shape that was not slow for so long is forgotten. */
const forgottenMs = 3_600_000;
const charactersMax = 400;

export class SlowLists {
  readonly leastMs: number;
  readonly #clock: () => number;
  readonly #known = new Map<string, Known>();

  constructor({ slowListMs, clock }: { readonly slowListMs: number; readonly clock: () => number }) {
    this.leastMs = slowListMs;
    this.#clock = clock;
  }

  note({ list, asked, plan, durationMs, hasFailed }: Read): void {
    const now = this.#clock();
    const [by = '', words = ''] = plan.split(';words=', 2);
    const shape = { list, plan: by, filter: cut(filterText(asked.filter)), sort: cut(sortText(asked)) };
    const key = JSON.stringify(shape);
    const known = this.#known.get(key) ?? this.#add(key, shape, now, durationMs);
    if (known === undefined) return;
    known.words = cut(words.slice(1, -1));
    known.failures += hasFailed ? 1 : 0;
    known.maxMs = Math.max(known.maxMs, durationMs);
    known.lastAt = now;
    const bucket = bucketOf(durationMs);
    known.buckets[bucket] = (known.buckets[bucket] ?? 0) + 1;
  }

  /** The slowest first. */
  list(): readonly SlowList[] {
    this.#forget(this.#clock());
    const shown = [...this.#known.values()].map(
      ({ shape, words, failures, maxMs, firstAt, lastAt, buckets }) => ({
        ...shape,
        words,
        count: buckets.reduce((sum, count) => sum + count, 0),
        failures,
        p50Ms: Math.round(Math.min(medianOf(buckets), maxMs) * 10) / 10,
        maxMs: Math.round(maxMs * 10) / 10,
        firstAt: new Date(firstAt).toISOString(),
        lastAt: new Date(lastAt).toISOString(),
      }),
    );
    return shown.sort((one, other) => other.maxMs - one.maxMs);
  }

  /** @returns undefined if there is no room for a list that was faster than all that are known */
  #add(key: string, shape: Known['shape'], now: number, durationMs: number): Known | undefined {
    if (this.#known.size >= memoryBounds.slowLists.entries) {
      this.#forget(now);
      const [fastest, known] = [...this.#known].reduce((one, other) =>
        other[1].maxMs < one[1].maxMs ? other : one,
      );
      if (this.#known.size >= memoryBounds.slowLists.entries) {
        if (known.maxMs > durationMs) return undefined;
        this.#known.delete(fastest);
      }
    }
    const made: Known = {
      ...{ shape, words: '', failures: 0, maxMs: 0, firstAt: now, lastAt: now },
      buckets: new Uint32Array(bucketsCount),
    };
    this.#known.set(key, made);
    return made;
  }

  #forget(now: number): void {
    for (const [key, { lastAt }] of this.#known) if (now - lastAt > forgottenMs) this.#known.delete(key);
  }
}

function bucketOf(durationMs: number): number {
  const bucket = Math.floor(2 * Math.log2(Math.max(1, durationMs)));
  return Math.min(bucketsCount - 1, bucket);
}

/** The end of the bucket that has the median. */
function medianOf(buckets: Uint32Array): number {
  const half = buckets.reduce((sum, count) => sum + count, 0) / 2;
  let seen = 0;
  for (const [bucket, count] of buckets.entries()) {
    seen += count;
    if (seen >= half) return 2 ** ((bucket + 1) / 2);
  }
  return 0;
}

function cut(text: string): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax)}…`;
}

function sortText({ sort, aggregation }: Read['asked']): string {
  const keys = sort
    .map(({ field, direction }) => `${direction === 'desc' ? '-' : ''}${field.name}`)
    .join(',');
  if (aggregation === undefined) return keys;
  const groups = aggregation.groupBy.map(({ name }) => name).join(', ');
  return groups === '' ? 'one group' : `groups by ${groups}`;
}

function filterText(filter: Filter): string {
  switch (filter.op) {
    case 'always':
      return '';
    case 'never':
      return 'nothing';
    case 'and':
    case 'or':
      return `(${[...new Set(filter.filters.map(filterText))].sort().join(` ${filter.op} `)})`;
    case 'not':
      return `not ${filterText(filter.filter)}`;
    case 'search':
      return 'q';
    case 'related':
      return `${filter.field.name} names (${filterText(filter.filter)})`;
    default:
      return `${filter.field.name} ${filter.op}`;
  }
}
