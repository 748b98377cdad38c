/** A change of each of the things that a command names. A refusal does not stop the others; the command fails at the end. */
import { CommandFailure, exitCodes } from './failure.ts';
import type { Terminal } from './terminal.ts';

/**
 * @param json prints what the server returned for all of them, in place of a line each
 * @returns the exit code
 * @throws any error of a change but CommandFailure
 */
export async function changeEach(
  terminal: Terminal,
  ids: readonly string[],
  json: boolean,
  { change, told }: { readonly change: (id: string) => Promise<unknown>; readonly told: string },
): Promise<number> {
  const changed: unknown[] = [];
  const failures: string[] = [];
  for (const id of ids) {
    try {
      changed.push(await change(id));
      if (!json) terminal.out(`${id} ${told}`);
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      failures.push(ids.length === 1 ? error.message : `${id}: ${error.message}`);
    }
  }
  if (json) terminal.out(JSON.stringify(changed, undefined, 2));
  for (const failure of failures) terminal.err(`comity: ${failure}`);
  return failures.length > 0 ? exitCodes.failed : exitCodes.done;
}
