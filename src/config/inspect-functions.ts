/**
 * Subscribers, which get events after the commit, at least once, and whose writes commit once: their declaration, and the checks of it and of
 * jobs. Every mistake is reported at once, with the name and the member.
 */
import { type TObject, Type } from 'typebox';
import { Check } from 'typebox/value';
import type { Actor } from '../model/actor.ts';
import type { Change } from '../model/event.ts';
import { eventPatternFault } from '../model/event.ts';
import type { WithOpenFiles } from '../model/file.ts';
import type { DocumentOf, Resources } from '../model/logic/collection-calls.ts';
import type { Logic } from '../model/logic/logic.ts';
import { collectionOfType, eventTypeFault, isOperationalType } from './event-types.ts';
import { inFlightShape } from './inspect-senders.ts';
import { kindOf, nearest, suggestion } from './inspection.ts';
import { type DeclaredJob, type JobDeclaration, type JobTiming, jobTimes } from './jobs.ts';
import type { NamedInFunctions } from './named-in-functions.ts';
import { handOnScheduleDefault, jobSource, type Source, subscriberSource } from './senders.ts';
import {
  choiceOf,
  descriptionShape,
  functionAs,
  inspectShape,
  namedParts,
  type Reporter,
  type SoundParts,
  unshaped,
  wholeWithin,
} from './shape.ts';
import { scheduleShape } from './webhook-schedules.ts';

const functionsMax = 1000;
const patternsMax = 100;
const functionName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const timeoutMsMax = 24 * 3_600_000;

const retry = {
  description: descriptionShape,
  schedule: Type.Optional(scheduleShape),
};
const subscriberShape = Type.Object(
  {
    handler: functionAs<SubscriberDeclaration['handler']>(),
    orderBy: Type.Optional(functionAs<OrderBy>('must be a function of the event')),
    ...unshaped('events'),
    ...retry,
    inFlightMax: inFlightShape,
  },
  { calls: 'property of a subscriber' },
);
const jobShape = Type.Object(
  {
    ...unshaped('cron', 'every', 'timeZone'),
    run: functionAs<JobDeclaration['run']>(),
    ifMissed: Type.Optional(choiceOf(['run', 'skip'], { must: 'must be run or skip' })),
    timeoutMs: Type.Optional(wholeWithin(10, timeoutMsMax)),
    ...retry,
  },
  { calls: 'property of a job' },
);

export function inspectSubscribers(
  written: unknown,
  mistakes: string[],
): ReadonlyMap<string, DeclaredSubscriber> {
  return inspectAll('subscriber', subscriberShape, written, mistakes, resolveSubscriber);
}

const changes: readonly string[] = ['created', 'updated', 'deleted'] satisfies Change[];

/** Names of what a configuration declares, of which functions name some. */
export type DeclaredNames = {
  readonly collections: ReadonlySet<string>;
  readonly eventTypes: ReadonlyMap<string, unknown>;
  /** Undefined: they are not known, because of other mistakes. */
  readonly templates: ReadonlyMap<string, unknown> | undefined;
};

/**
 * Reports patterns of subscribers that no event can match: nothing emits the type, and `eventTypes`, for what an application emits or posts,
 * does not declare it.
 */
export function inspectSubscribedTypes(
  subscribers: ReadonlyMap<string, DeclaredSubscriber>,
  names: DeclaredNames,
  mistakes: string[],
): void {
  for (const { name, events } of subscribers.values()) {
    for (const pattern of events) {
      if (eventPatternFault(pattern) !== undefined || isKnownPattern(pattern, names)) continue;
      mistakes.push(
        `subscriber ${name}: events: no collection emits "${pattern}", and eventTypes does not declare it${meantEvent(pattern, names)}`,
      );
    }
  }
}

function isKnownPattern(pattern: string, { collections, eventTypes }: DeclaredNames): boolean {
  if (pattern === '*' || isOperationalType(pattern.replace(anyFurther, ''))) return true;
  if (!anyFurther.test(pattern)) {
    return eventTypes.has(pattern) || collectionOfType(pattern, collections) !== undefined;
  }
  const above = pattern.slice(0, -1);
  return (
    collections.has(pattern.slice(0, -2)) || [...eventTypes.keys()].some((type) => type.startsWith(above))
  );
}

const anyFurther = /\.\*$/;

/** A change of a collection with one part misspelt, or a declared type. */
function meantEvent(written: string, { collections, eventTypes }: DeclaredNames): string {
  const dot = written.lastIndexOf('.');
  const [of, change] = [written.slice(0, Math.max(dot, 0)), written.slice(dot + 1)];
  const [isCollection, isChange] = [collections.has(of), change === '*' || changes.includes(change)];
  if (isCollection === isChange) return suggestion(written, eventTypes.keys());
  const meant = isCollection ? nearest(change, changes) : nearest(of, collections);
  if (meant === undefined) return suggestion(written, eventTypes.keys());
  return `; did you mean ${isCollection ? `${of}.${meant}` : `${meant}.${change}`}?`;
}

/**
 * Reports names that stand in the source of functions (named-in-functions.ts) and that nothing has: templates of mails, and types of events
 * in a configuration that declares types, or that are nearly one that there is. Any other type may be emitted, with any object.
 */
export function inspectNamesInFunctions(
  { templates, emitted }: NamedInFunctions,
  names: DeclaredNames,
  mistakes: string[],
): void {
  for (const { name, place } of templates) {
    if (names.templates?.has(name) !== false) continue;
    const meant = suggestion(name, names.templates.keys());
    mistakes.push(`${place}: mail.send: no mail template is named "${name}"${meant}`);
  }
  for (const { name, place } of emitted) {
    const fault = eventTypeFault(name);
    const isKnown = isKnownPattern(name, names);
    const meant = meantEvent(name, names);
    if (fault !== undefined) mistakes.push(`${place}: emit: "${name}" ${fault}`);
    else if (!isKnown && (names.eventTypes.size > 0 || meant !== ''))
      mistakes.push(`${place}: emit: eventTypes does not declare "${name}"${meant}`);
  }
}

export function inspectJobs(written: unknown, mistakes: string[]): ReadonlyMap<string, DeclaredJob> {
  return inspectAll('job', jobShape, written, mistakes, resolveJob);
}

function inspectAll<S extends TObject, D>(
  kind: 'subscriber' | 'job',
  shape: S,
  written: unknown,
  mistakes: string[],
  resolve: (name: string, sound: SoundParts<S>, refuse: Reporter) => D,
): ReadonlyMap<string, D> {
  const found = new Map<string, D>();
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  for (const [name, declaration] of namedParts(written, `${kind}s`, report, { maxItems: functionsMax })) {
    const refuse: Reporter = (predicate) => report(`${kind} ${name}: ${predicate}`);
    if (!functionName.test(name)) {
      refuse('the name must be up to 64 letters, digits, _ and -, and begin with a letter or a digit');
    }
    const sound = inspectShape(shape, declaration, '', refuse);
    if (sound !== undefined) found.set(name, resolve(name, sound, refuse));
  }
  return found;
}

function resolveSubscriber(
  name: string,
  { description = '', events, orderBy, schedule, inFlightMax }: SoundParts<typeof subscriberShape>,
  refuse: Reporter,
): DeclaredSubscriber {
  return {
    ...{ name, description, orderBy },
    events: inspectPatterns(events, refuse),
    source: {
      name: subscriberSource(name),
      handOn: { kind: 'subscriber', of: name, timeoutMs: undefined },
      schedule: schedule ?? handOnScheduleDefault,
      inFlightMax,
    },
  };
}

function inspectPatterns(written: unknown, refuse: Reporter): readonly string[] {
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

function resolveJob(name: string, sound: SoundParts<typeof jobShape>, refuse: Reporter): DeclaredJob {
  const { description = '', ifMissed = 'run', timeoutMs, schedule = handOnScheduleDefault } = sound;
  return {
    ...{ name, description, ifMissed },
    timing: inspectTiming(sound, refuse),
    source: {
      name: jobSource(name),
      handOn: { kind: 'job', of: name, timeoutMs },
      schedule,
      inFlightMax: 1,
    },
  };
}

/** The timing of a declaration with a mistake, with which the program does not start. */
const never: JobTiming = { everyMs: Number.MAX_SAFE_INTEGER };

function inspectTiming({ cron, every, timeZone }: SoundParts<typeof jobShape>, refuse: Reporter): JobTiming {
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
const cronCharactersMax = 200;
/** Croner also takes a date, which is no schedule. */
const cronForm = /^@|\s/;
const classOfCroner = /^Cron\w+: /;
/** Any moment from which a time that ever comes is found: expressions repeat after 28 years at the latest. */
const anyTime = Date.UTC(2026, 0, 1);

function inspectCron(cron: unknown, timeZone: unknown, refuse: Reporter): JobTiming {
  const isZone = timeZone === undefined || isTimeZone(timeZone);
  if (!isZone) {
    refuse(`timeZone must be an IANA name, such as Europe/Berlin, not ${JSON.stringify(timeZone)}`);
  }
  if (typeof cron !== 'string' || cron.length > cronCharactersMax || !cronForm.test(cron.trim())) {
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
const period = wholeWithin(1, periodSecondsMax);

function inspectEvery(every: unknown, refuse: Reporter): JobTiming {
  const [, count, unit] = (typeof every === 'string' ? periodForm.exec(every) : undefined) ?? [];
  const seconds = unit === undefined ? every : Number(count) * (unitSeconds[unit] ?? 0);
  if (Check(period, seconds)) return { everyMs: seconds * 1000 };
  refuse(
    `every must be a whole number of seconds from 1 to ${periodSecondsMax}, or a text such as 30s, 15m, 1h or 7d, not ${JSON.stringify(every) ?? kindOf(every)}`,
  );
  return never;
}

type AnyObject = Readonly<Record<string, unknown>>;

/** An event as it is served, parsed. @template T the document that it is about, or the object of a posted event */
export type SubscribedEvent<T = AnyObject, Name extends string = string> = {
  readonly id: string;
  readonly object: 'event';
  /** `tickets.created`, or the type of a posted event. */
  readonly type: Name;
  /** Unix time in seconds. */
  readonly created: number;
  /** Who caused it. Absent in events of earlier versions. */
  readonly actor?: Actor;
  /** The request in which it was caused. Absent if none was. */
  readonly requestId?: string;
  /** The tenant that a posted event names. */
  readonly tenant?: string;
  readonly data: { readonly object: T };
};

/**
 * The event of one pattern: of a change it has the document, and of anything else an object of unknown members.
 * @template E `comments.created`; a union gives a union, which `event.type` distinguishes
 * @template C declarations of collections, by their names
 */
type EventOf<E extends string, C> = E extends `${infer Name}.${'created' | 'updated' | 'deleted'}`
  ? Name extends keyof C
    ? SubscribedEvent<WithOpenFiles<DocumentOf<C[Name]>>, E>
    : SubscribedEvent<AnyObject, E>
  : SubscribedEvent<AnyObject, E extends `${string}*${string}` ? string : E>;

/** The argument of a subscriber, which acts as an administrator. @template T as of the event @template R the calls on all collections */
export type EventHandling<T = AnyObject, R = Resources, E = SubscribedEvent<T>> = Logic<R> & {
  readonly event: E;
  /** The document before the change. Undefined for a creation, a posted event, and a replay of an event whose message is gone. */
  readonly before: T | undefined;
  /** The document after the change: the object of the event. Undefined for a deletion. */
  readonly after: T | undefined;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Aborted when the time for this attempt is over; pass it on to long operations. */
  readonly signal: AbortSignal;
};

type HandlingOf<R, E extends SubscribedEvent<unknown>> = EventHandling<E['data']['object'], R, E>;

/**
 * @template R the calls on the collections; never: not known
 * @template E its patterns of event types
 * @template C the declarations of the collections, by their names
 */
export type SubscriberDeclaration<R = never, E extends string = string, C = unknown> = {
  readonly description?: string;
  /** Patterns of event types, as of webhook endpoints: `comments.created`, `tickets.*`, `*`. */
  readonly events: readonly E[];
  /**
   * Events with the same key (a text or a number) are handled one after the other in their order: one that fails holds back those behind it.
   * It must be pure: it runs on the main thread, within the write. Undefined or null: no order.
   */
  orderBy?(event: EventOf<E, C>): unknown;
  /** Seconds from each failed attempt to the next; after the last one the message is `failed`. */
  readonly schedule?: readonly number[];
  /** Events handled at once by one process. */
  readonly inFlightMax?: number;
  /** A method, so that the type of the event's document may be narrower: `handler({ event }: EventHandling<Comment, Desk>)`. */
  handler(handling: HandlingOf<R, EventOf<E, C>>): void | Promise<void>;
};

type OrderBy = NonNullable<SubscriberDeclaration['orderBy']>;

export type DeclaredSubscriber = {
  readonly name: string;
  readonly description: string;
  readonly events: readonly string[];
  readonly orderBy: OrderBy | undefined;
  readonly source: Source;
};
