/** Whether a program's memory grows: samples over time in, a figure out. Pure. */

export type MemorySample = { readonly atMs: number; readonly bytes: number };

export type Growth = {
  /** Of the line with the least squares through the samples after the warm-up, an hour. */
  readonly bytesPerHour: number;
  /** Medians of the first and the last third after the warm-up. */
  readonly earlyBytes: number;
  readonly lateBytes: number;
};

/** @param warmupShare of the time, at whose start caches fill and code is compiled */
export function growthOf(samples: readonly MemorySample[], warmupShare: number): Growth {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || samples.length < 12)
    throw new RangeError(`${samples.length} samples say nothing`);
  const fromMs = first.atMs + (last.atMs - first.atMs) * warmupShare;
  const warm = samples.filter(({ atMs }) => atMs >= fromMs);
  const third = Math.floor(warm.length / 3);
  return {
    bytesPerHour: slopeOf(warm) * 3_600_000,
    earlyBytes: medianOf(warm.slice(0, third)),
    lateBytes: medianOf(warm.slice(-third)),
  };
}

/** Bytes a millisecond. */
function slopeOf(samples: readonly MemorySample[]): number {
  const meanAt = samples.reduce((sum, { atMs }) => sum + atMs, 0) / samples.length;
  const meanBytes = samples.reduce((sum, { bytes }) => sum + bytes, 0) / samples.length;
  let [above, below] = [0, 0];
  for (const { atMs, bytes } of samples) {
    above += (atMs - meanAt) * (bytes - meanBytes);
    below += (atMs - meanAt) ** 2;
  }
  return above / below;
}

function medianOf(samples: readonly MemorySample[]): number {
  const sorted = samples.map(({ bytes }) => bytes).sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
