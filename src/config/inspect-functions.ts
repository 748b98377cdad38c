/** Checks the declared subscribers and jobs. Every mistake is reported at once, with the name and the member. */
import type { Change } from '../model/event.ts';
import { eventPatternFault } from '../model/event-pattern.ts';
import { isRecord, kindOf } from './inspection.ts';
import { type DeclaredJob, type JobDeclaration, type JobTiming, jobTimes } from './jobs.ts';
import { nearest, suggestion } from './nearest.ts';
import { inspectInFlight, inspectSchedule } from './senders/inspect-hand-on.ts';
import { isText, isWhole, type Refuse } from './senders/refuse.ts';
import { jobSource, subscriberSource } from './sources.ts';
import type { DeclaredSubscriber, OrderBy, SubscriberDeclaration } from './subscribers.ts';

type Written = Readonly<Record<string, unknown>>;

const functionsMax = 1000;
const patternsMax = 100;
const descriptionCharactersMax = 2000;
const functionName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const timeoutMsMax = 24 * 3_600_000;

const subscriberMembers: ReadonlySet<string> = new Set<keyof SubscriberDeclaration>([
  'description',
  'events',
  'handler',
  'inFlightMax',
  'orderBy',
  'schedule',
]);

const jobMembers: ReadonlySet<string> = new Set<keyof JobDeclaration>([
  'cron',
  'description',
  'every',
  'ifMissed',
  'run',
  'schedule',
  'timeZone',
  'timeoutMs',
]);

export function inspectSubscribers(
  written: unknown,
  mistakes: string[],
): ReadonlyMap<string, DeclaredSubscriber> {
  return inspectAll({ kind: 'subscriber', members: subscriberMembers }, written, mistakes, inspectSubscriber);
}

const changes: readonly string[] = ['created', 'updated', 'deleted'] satisfies Change[];

/**
 * Warns of events that no write emits, where a write emits one of nearly the same name. It is no mistake, because functions and clients may post
 * events of any type; a type that is declared under `eventTypes` is meant.
 */
export function warnOfMisspeltEvents(
  subscribers: ReadonlyMap<string, DeclaredSubscriber>,
  collections: ReadonlyMap<string, unknown>,
  eventTypes: ReadonlyMap<string, unknown>,
  warn: (sentence: string) => void,
): void {
  for (const { name, events } of subscribers.values()) {
    for (const type of events) {
      const meant = eventTypes.has(type) ? undefined : meantEvent(type, collections);
      if (meant === undefined) continue;
      warn(
        `subscriber ${name}: no write emits "${type}"; did you mean ${meant}? If your application posts it, declare it in eventTypes`,
      );
    }
  }
}

function meantEvent(type: string, collections: ReadonlyMap<string, unknown>): string | undefined {
  const dot = type.lastIndexOf('.');
  const [of, change] = [type.slice(0, Math.max(dot, 0)), type.slice(dot + 1)];
  const [isCollection, isChange] = [collections.has(of), changes.includes(change)];
  if (isCollection === isChange) return undefined;
  const meant = isCollection ? nearest(change, changes) : nearest(of, collections.keys());
  if (meant === undefined) return undefined;
  return isCollection ? `${of}.${meant}` : `${meant}.${change}`;
}

export function inspectJobs(written: unknown, mistakes: string[]): ReadonlyMap<string, DeclaredJob> {
  return inspectAll({ kind: 'job', members: jobMembers }, written, mistakes, inspectJob);
}

type Kind = { readonly kind: 'subscriber' | 'job'; readonly members: ReadonlySet<string> };

function inspectAll<D>(
  { kind, members }: Kind,
  written: unknown,
  mistakes: string[],
  inspect: (name: string, declaration: Written, refuse: Refuse) => D,
): ReadonlyMap<string, D> {
  const found = new Map<string, D>();
  if (written === undefined) return found;
  if (!isRecord(written)) {
    mistakes.push(`${kind}s must be an object, not ${kindOf(written)}`);
    return found;
  }
  const entries = Object.entries(written);
  if (entries.length > functionsMax) mistakes.push(`${kind}s may hold ${functionsMax} at most`);
  for (const [name, declaration] of entries.slice(0, functionsMax)) {
    const refuse: Refuse = (predicate) => void mistakes.push(`${kind} ${name}: ${predicate}`);
    if (!functionName.test(name)) {
      refuse('the name must be up to 64 letters, digits, _ and -, and begin with a letter or a digit');
    }
    if (!isRecord(declaration)) {
      refuse(`must be an object, not ${kindOf(declaration)}`);
      continue;
    }
    for (const member of Object.keys(declaration)) {
      if (!members.has(member)) {
        refuse(`"${member}" is not a property of a ${kind}${suggestion(member, members)}`);
      }
    }
    found.set(name, inspect(name, declaration, refuse));
  }
  return found;
}

function inspectSubscriber(name: string, written: Written, refuse: Refuse): DeclaredSubscriber {
  const { orderBy, handler, description } = written;
  if (typeof handler !== 'function') refuse(`handler must be a function, not ${kindOf(handler)}`);
  if (orderBy !== undefined && typeof orderBy !== 'function') {
    refuse(`orderBy must be a function of the event, not ${kindOf(orderBy)}`);
  }
  return {
    name,
    description: inspectDescription(description, refuse),
    events: inspectPatterns(written.events, refuse),
    orderBy: orderBy as OrderBy | undefined,
    source: {
      name: subscriberSource(name),
      handOn: { kind: 'subscriber', of: name, timeoutMs: undefined },
      schedule: inspectSchedule(written.schedule, refuse),
      inFlightMax: inspectInFlight(written.inFlightMax, refuse),
    },
  };
}

function inspectPatterns(written: unknown, refuse: Refuse): readonly string[] {
  if (!Array.isArray(written) || written.length === 0 || written.length > patternsMax) {
    const size = !Array.isArray(written)
      ? kindOf(written)
      : written.length === 0
        ? 'an empty list'
        : `a list of ${written.length}`;
    refuse(
      `events must be a list of 1 to ${patternsMax} patterns, such as ['comments.created'], not ${size}`,
    );
    return [];
  }
  return [...new Set(written)].flatMap((pattern: unknown) => {
    const fault = typeof pattern === 'string' ? eventPatternFault(pattern) : `must be a text`;
    if (fault !== undefined) refuse(`events: ${JSON.stringify(pattern) ?? kindOf(pattern)} ${fault}`);
    return typeof pattern === 'string' ? [pattern] : [];
  });
}

function inspectDescription(written: unknown, refuse: Refuse): string {
  if (written === undefined) return '';
  if (typeof written === 'string' && written.length <= descriptionCharactersMax) return written;
  refuse(`description must be a string of at most ${descriptionCharactersMax} characters`);
  return '';
}

function inspectJob(name: string, written: Written, refuse: Refuse): DeclaredJob {
  const { run, ifMissed = 'run', timeoutMs, description } = written;
  if (typeof run !== 'function') refuse(`run must be a function, not ${kindOf(run)}`);
  if (ifMissed !== 'run' && ifMissed !== 'skip') refuse('ifMissed must be run or skip');
  if (timeoutMs !== undefined && !isWhole(timeoutMs, 10, timeoutMsMax)) {
    refuse(`timeoutMs must be a whole number from 10 to ${timeoutMsMax}`);
  }
  return {
    name,
    description: inspectDescription(description, refuse),
    timing: inspectTiming(written, refuse),
    ifMissed: ifMissed === 'skip' ? 'skip' : 'run',
    source: {
      name: jobSource(name),
      handOn: { kind: 'job', of: name, timeoutMs: timeoutMs as number | undefined },
      schedule: inspectSchedule(written.schedule, refuse),
      inFlightMax: 1,
    },
  };
}

/** The timing of a declaration with a mistake, with which the program does not start. */
const never: JobTiming = { everyMs: Number.MAX_SAFE_INTEGER };

function inspectTiming({ cron, every, timeZone }: Written, refuse: Refuse): JobTiming {
  if ((cron === undefined) === (every === undefined)) {
    if (cron !== undefined) refuse('has both cron and every: give one of them');
    else refuse("must have either cron, such as '0 3 * * *', or every, such as '15m'");
    return never;
  }
  if (cron !== undefined) return inspectCron(cron, timeZone, refuse);
  if (timeZone !== undefined) refuse('timeZone has no effect without cron');
  return inspectEvery(every, refuse);
}

const cronRule =
  "cron must be five fields, such as '0 3 * * *': minute, hour, day of the month, month, day of the week";
/** Croner also takes a date, which is no schedule. */
const cronForm = /^@|\s/;
const classOfCroner = /^Cron\w+: /;
/** Any moment from which a time that ever comes is found: expressions repeat after 28 years at the latest. */
const anyTime = Date.UTC(2026, 0, 1);

function inspectCron(cron: unknown, timeZone: unknown, refuse: Refuse): JobTiming {
  const isZone = timeZone === undefined || isTimeZone(timeZone);
  if (!isZone) {
    refuse(`timeZone must be an IANA name, such as Europe/Berlin, not ${JSON.stringify(timeZone)}`);
  }
  if (!isText(cron, 200) || !cronForm.test(cron.trim())) {
    refuse(`${cronRule}, not ${JSON.stringify(cron)}`);
    return never;
  }
  const timing = { cron, timeZone: isZone ? String(timeZone ?? 'UTC') : 'UTC' };
  try {
    if (jobTimes(timing).after(anyTime) !== undefined) return timing;
    refuse(`cron ${JSON.stringify(cron)} names a time that never comes`);
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(classOfCroner, '') : String(error);
    refuse(`${cronRule}; ${JSON.stringify(cron)} is not: ${why}`);
  }
  return never;
}

function isTimeZone(written: unknown): boolean {
  if (typeof written !== 'string' || written === '') return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: written });
    return true;
  } catch {
    // It throws a RangeError for any other name; the caller reports it.
    return false;
  }
}

const periodForm = /^(\d{1,9})\s*(s|m|h|d)$/;
const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const periodSecondsMax = 366 * 86_400;

function inspectEvery(every: unknown, refuse: Refuse): JobTiming {
  const [, count, unit] = (typeof every === 'string' ? periodForm.exec(every) : undefined) ?? [];
  const seconds = unit === undefined ? every : Number(count) * (unitSeconds[unit] ?? 0);
  if (isWhole(seconds, 1, periodSecondsMax)) return { everyMs: seconds * 1000 };
  refuse(
    `every must be a whole number of seconds from 1 to ${periodSecondsMax}, or a text such as 30s, 15m, 1h or 7d, not ${JSON.stringify(every) ?? kindOf(every)}`,
  );
  return never;
}
