/** Waits for what a test cannot be told of: it looks again and again, with a pause that leaves the processor to the program. */

const pauseMs = 5;
const patienceMs = 30_000;

/**
 * Resolves once `holds` is true. The patience is for a machine that is very busy: what a test asserts is that it comes to pass.
 * @throws Error with `what` when it does not within 30 s
 */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
