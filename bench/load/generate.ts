/** Runs the load generator as a process of its own on its own processor, and returns what it measured. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type Pinning, pinnedCommand } from '../pin.ts';
import type { LoadPlan, LoadResult } from './plan.ts';

const program = fileURLToPath(new URL('./main.ts', import.meta.url));

/** A server that has just started, beside others, may answer nothing within a short cell; then the cell is measured again. */
const attemptsMax = 4;
/** Fewer than lie between two cells. */
const attemptCreatesMax = 1_000_000;

/** Throws when any answer was wrong, and when there was none: figures of such a load mean nothing. */
export async function generateLoad(pinning: Pinning, plan: LoadPlan): Promise<LoadResult> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    // What it created unseen is there: the next attempt creates others.
    const createFrom = plan.createFrom + (attempt - 1) * attemptCreatesMax;
    const result = await generateOnce(pinning, { ...plan, createFrom });
    if (result.latency.count > 0) return result;
  }
  throw new Error(`${plan.kind}: no answers while measuring`);
}

async function generateOnce(pinning: Pinning, plan: LoadPlan): Promise<LoadResult> {
  const [command, args] = pinnedCommand(pinning, 1, [program]);
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify({ ...plan, polls: plan.polls && pinning.pinned }));
  const output = await text(child.stdout);
  if (output === '') throw new Error(`the load generator failed at ${plan.kind}`);
  const result: LoadResult = JSON.parse(output);
  if (result.errors > 0)
    throw new Error(`${plan.kind}: ${result.errors} wrong answers: ${result.faults.join('; ')}`);
  return result;
}
