/** A reporter of node:test that informs the runner of each test that has ended, and prints nothing. */
import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';
import { processorMs } from './processor-time.ts';
import type { Failure, Report } from './protocol.ts';

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    const told = reportOf(event);
    if (told !== undefined) process.send?.(told);
  }
  // The process ends here. Where it ran one file alone, this is its only word of that file's end.
  process.send?.({ kind: 'file-ended', processorMs: processorMs(), leftOpen: [] } satisfies Report);
  // A reporter is a generator of text; this one has none.
  yield '';
}

function reportOf(event: TestEvent): Report | undefined {
  if (event.type === 'test:diagnostic') {
    // At the top are the closing counts of the process; the runner makes those of the whole run.
    return event.data.nesting === 0 ? undefined : { kind: 'remark', text: event.data.message };
  }
  if (event.type !== 'test:pass' && event.type !== 'test:fail') return undefined;
  const { name, details, file, line, column, skip } = event.data;
  return {
    kind: 'ended',
    title: name,
    outcome:
      event.type === 'test:fail' ? 'failed' : skip === undefined || skip === false ? 'passed' : 'skipped',
    isSuite: details.type === 'suite',
    durationMs: details.duration_ms,
    at: `${file}:${line}:${column}`,
    failure: event.type === 'test:fail' ? failureOf(event.data.details.error) : undefined,
  };
}

/** Node wraps what a test throws in an error of its own. */
function failureOf(error: Error & { readonly cause?: unknown; readonly failureType?: string }): Failure {
  return { text: inspect(error.cause ?? error, { depth: 6 }), type: error.failureType ?? 'unknown' };
}
