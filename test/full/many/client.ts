/**
 * A client that does what one must when processes die under it: it asks again on another process, under the same
 * Idempotency-Key or If-Match, and where neither tells what became of a request, it looks.
 */
import type { Answer, RequestOptions } from '../../harness/exchange.ts';
import type { ServerProcess } from '../../harness/server-process.ts';
import type { Fleet } from './fleet.ts';

/** What the service did that it never may, whatever dies: each is a sentence. */
export type Violations = string[];

export type Client = {
  /** One request to one process; undefined when the connection broke, so that nobody knows. */
  attempt(method: string, path: string, options?: RequestOptions): Promise<Answer | undefined>;
  /** Until there is an answer that is final; undefined when none came in time. For requests that may be repeated. */
  insist(method: string, path: string, options?: RequestOptions): Promise<Answer | undefined>;
  /** The process that has the most requests of this client to answer: a kill of it breaks them. @throws when none runs */
  busiest(): ServerProcess;
  readonly counts: { requests: number; broken: number; unavailable: number };
};

/** Longer than any bound of the program on a request: `databaseTimeoutMs`, and as much again for a busy machine. */
const hungMs = 15_000;
const insistMs = 20_000;
/** A key whose process died is in use for some seconds: this client has other things to do meanwhile. */
const inUseMs = 3000;
const pauseMsMax = 200;

export function createClient(fleet: Fleet, violations: Violations): Client {
  const counts = { requests: 0, broken: 0, unavailable: 0 };
  const waiting = new Map<ServerProcess, number>();

  async function attempt(
    method: string,
    path: string,
    options?: RequestOptions,
  ): Promise<Answer | undefined> {
    if (fleet.running.length === 0) return undefined;
    counts.requests += 1;
    const hung = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => {
      violations.push(`${method} ${path} was not answered within ${hungMs} ms`);
      hung.resolve(undefined);
    }, hungMs);
    const program = fleet.pick();
    waiting.set(program, (waiting.get(program) ?? 0) + 1);
    const sent = program.send(method, path, options).catch(() => undefined);
    const answer = await Promise.race([sent, hung.promise]);
    clearTimeout(timer);
    waiting.set(program, (waiting.get(program) ?? 0) - 1);
    if (answer === undefined) counts.broken += 1;
    else if (answer.status === 503) {
      counts.unavailable += 1;
      if (answer.headers['retry-after'] === undefined)
        violations.push(`${method} ${path}: 503 without Retry-After`);
    } else if (answer.status >= 500) violations.push(`${method} ${path}: ${answer.status} ${answer.body}`);
    return answer;
  }

  async function insist(method: string, path: string, options?: RequestOptions): Promise<Answer | undefined> {
    const begun = Date.now();
    let inUseSince = Number.POSITIVE_INFINITY;
    while (Date.now() < begun + insistMs) {
      const answer = await attempt(method, path, options);
      const inUse = answer !== undefined && isInUse(answer);
      if (answer !== undefined && answer.status !== 503 && !inUse) return answer;
      inUseSince = inUse ? Math.min(inUseSince, Date.now()) : Number.POSITIVE_INFINITY;
      if (Date.now() > inUseSince + inUseMs) return undefined;
      // Sooner than Retry-After asks for: the test would otherwise wait most of its time.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * pauseMsMax));
    }
    return undefined;
  }

  function busiest(): ServerProcess {
    const [first = fleet.pick()] = fleet.running.toSorted(
      (one, other) => (waiting.get(other) ?? 0) - (waiting.get(one) ?? 0),
    );
    return first;
  }

  return { attempt, insist, busiest, counts };
}

/** The key's first request may be under way, or may have died with its process. */
function isInUse(answer: Answer): boolean {
  return answer.status === 409 && answer.body.includes('idempotency_key_in_use');
}
