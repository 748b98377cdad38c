/**
 * A process that runs test files one after another, each as a suite named by its file: a process a file would spend half a second of
 * processor time on Node, the schema library and the program's own modules, some four hundred times.
 *
 * What a file leaves open is reported, since the files after it would have it too.
 */
import './preload.ts';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { processorMs } from './processor-time.ts';
import type { Assignment, Report } from './protocol.ts';

/** How often, and with which pause, it looks whether what a file has begun is over: some of it closes after the last test. */
const looksMax = 50;
const pauseMs = 20;

// A static import of a module of Node's own would load it before preload.ts runs.
const { suite } = await import('node:test');
const timeout = Number(process.env.COMITY_TEST_FILE_MS);

// Node ends a process in which nothing waits but what it shall disregard; the files still to come keep this one.
process.channel?.ref();

for (;;) {
  tell({ kind: 'ready' });
  const { file } = await assigned();
  if (file === null) break;
  const before = openResources();
  const startedAt = processorMs();
  await suite(file, { timeout }, async () => {
    await import(pathToFileURL(file).href);
  });
  const leftOpen = await newResources(before);
  tell({ kind: 'file-ended', processorMs: processorMs() - startedAt, leftOpen });
}
// The channel stays for the reporter, which is a little behind, and no longer keeps the process.
process.channel?.unref();

/** A listener that is taken away would take the reference of the channel with it. */
async function assigned(): Promise<Assignment> {
  const [assignment] = (await once(process, 'message')) as [Assignment];
  process.channel?.ref();
  return assignment;
}

function tell(report: Report): void {
  process.send?.(report);
}

/** What keeps the process alive: how many of each kind of resource. */
function openResources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** The kinds of which more is open than was. */
async function newResources(before: ReadonlyMap<string, number>): Promise<readonly string[]> {
  for (let look = 1; ; look += 1) {
    const added = [...openResources()].filter(([name, count]) => count > (before.get(name) ?? 0));
    if (added.length === 0 || look === looksMax) return added.map(([name]) => name);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
