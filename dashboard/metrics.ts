/** The metrics of the server, read from the Prometheus text format, as the views show them. */
import { send } from './send.ts';

export type Sample = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** @returns undefined if the caller may not read them */
export async function readMetrics(): Promise<readonly Sample[] | undefined> {
  const reply = await send('GET', '/metrics', { headers: { Accept: '*/*' } });
  return reply.status === 200 ? parseMetrics(reply.text) : undefined;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

function parseMetrics(text: string): readonly Sample[] {
  return text.split('\n').flatMap((each) => {
    const [, name, labels = '', value] = line.exec(each) ?? [];
    if (name === undefined) return [];
    const pairs = [...labels.matchAll(label)].map(([, key = '', shown = '']) => [key, shown] as const);
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
  });
}

/** The sum of all samples of a name. */
export function totalOf(samples: readonly Sample[], name: string): number {
  return samples.reduce((sum, each) => (each.name === name ? sum + each.value : sum), 0);
}

/**
 * A quantile of a histogram, in its unit, by linear interpolation within the bucket, as Prometheus computes it.
 * @param earlier samples to subtract: the quantile is that of the time between; absent: since the start
 */
export function quantileOf(
  samples: readonly Sample[],
  {
    name,
    quantile,
    earlier = [],
  }: { readonly name: string; readonly quantile: number; readonly earlier?: readonly Sample[] },
): number | undefined {
  const counts = new Map<number, number>();
  const add = (from: readonly Sample[], sign: number) => {
    for (const each of from) {
      if (each.name !== `${name}_bucket`) continue;
      const bound = Number(each.labels.le?.replace('+Inf', 'Infinity'));
      counts.set(bound, (counts.get(bound) ?? 0) + sign * each.value);
    }
  };
  add(samples, 1);
  add(earlier, -1);
  const buckets = [...counts].sort(([one], [other]) => one - other);
  const all = buckets.at(-1)?.[1] ?? 0;
  if (all <= 0) return undefined;
  const rank = quantile * all;
  let [lowerBound, lowerCount] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      if (bound === Number.POSITIVE_INFINITY) return lowerBound;
      const share = count === lowerCount ? 1 : (rank - lowerCount) / (count - lowerCount);
      return lowerBound + share * (bound - lowerBound);
    }
    [lowerBound, lowerCount] = [bound, count];
  }
  return lowerBound;
}
