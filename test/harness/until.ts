/** Waits for what a test cannot be told of: it looks again and again, with pauses that leave the processor to the program. */

const pauseMsMin = 5;
const pauseMsMax = 50;
export const patienceMs = 90_000;

/**
 * Resolves once `holds` is true. The patience is for a machine that is very busy: what a test asserts is that it comes to pass.
 * @throws Error with `what` when it does not within the patience
 */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what: string = String(holds),
  msMax: number = patienceMs,
): Promise<void> {
  await eventually(async () => (await holds()) || undefined, what, msMax);
}

/**
 * Resolves with what `look` finds, once that is not undefined.
 * @throws Error with `what` when it finds nothing within the patience
 */
export async function eventually<T>(
  look: () => Promise<T | undefined>,
  what: string = String(look),
  msMax: number = patienceMs,
): Promise<T> {
  const giveUpAt = performance.now() + msMax;
  for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > giveUpAt) throw new Error(`not within ${msMax} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
