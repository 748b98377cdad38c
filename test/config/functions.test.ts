/** Declarations of subscribers and jobs: what is filled in, and every mistake with its name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'comity';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import type { ConfigurationDeclaration } from '../../src/config/define.ts';
import { ConfigurationError } from '../../src/config/inspection.ts';

function resolve(functions: object) {
  return resolveConfiguration({ collections: {}, ...functions } as ConfigurationDeclaration);
}

function mistakes(functions: object): readonly string[] {
  try {
    resolve(functions);
  } catch (error) {
    assert.ok(error instanceof ConfigurationError);
    return error.mistakes;
  }
  return assert.fail('nothing was refused');
}

const handler = () => undefined;
const run = () => undefined;

test('declarations are filled in', () => {
  const { subscribers, jobs } = resolve({
    eventTypes: { 'a.created': {}, 'b.changed': {} },
    subscribers: { reopen: { events: ['a.created', 'a.created', 'b.*'], handler } },
    jobs: {
      nightly: { cron: '0 3 * * MON-FRI', timeZone: 'Europe/Berlin', run },
      often: { every: '15m', ifMissed: 'skip', timeoutMs: 100, run },
      second: { every: 1, run },
    },
  });
  assert.deepEqual(subscribers.get('reopen')?.events, ['a.created', 'b.*']);
  assert.equal(subscribers.get('reopen')?.source.name, 'subscriber:reopen');
  assert.deepEqual(jobs.get('nightly')?.timing, { cron: '0 3 * * MON-FRI', timeZone: 'Europe/Berlin' });
  assert.deepEqual(jobs.get('often')?.timing, { everyMs: 900_000 });
  assert.deepEqual(jobs.get('second')?.timing, { everyMs: 1000 });
  assert.equal(jobs.get('often')?.source.inFlightMax, 1);
});

test('a subscriber to an event that nothing emits is a mistake, which names the one that was meant', () => {
  const schema = Type.Object({ title: Type.String() });
  const mistakesOf = (events: readonly string[]): readonly string[] => {
    const declaration = {
      collections: { tickets: { schema }, comments: { schema } },
      eventTypes: { 'ticket.updated': { description: 'Told by another program.' }, 'invoice.paid.late': {} },
      subscribers: { s: { events, handler } },
    };
    try {
      resolveConfiguration(declaration);
      return [];
    } catch (error) {
      assert.ok(error instanceof ConfigurationError);
      return error.mistakes;
    }
  };
  const told = (written: string, meant?: string): string =>
    `subscriber s: events: no collection emits "${written}", and eventTypes does not declare it${meant === undefined ? '' : `; did you mean ${meant}?`}`;
  assert.deepEqual(
    mistakesOf([
      'tickets.creatd',
      'comments.update',
      'ticket.deleted',
      'tickets.merged',
      'order.*',
      'invoice',
    ]),
    [
      told('tickets.creatd', 'tickets.created'),
      told('comments.update', 'comments.updated'),
      told('ticket.deleted', 'tickets.deleted'),
      told('tickets.merged'),
      told('order.*'),
      told('invoice'),
    ],
  );
  const emitted = ['tickets.created', 'tickets.*', '*', 'ticket.updated', 'ticket.*', 'invoice.paid.*'];
  assert.deepEqual(mistakesOf([...emitted, 'endpoint.disabled', 'endpoint.*']), []);
});

test('all mistakes are told together', () => {
  const found = mistakes({
    subscribers: {
      'bad name': { events: ['*'], handler },
      events: { handler },
      none: { events: [], handler },
      pattern: { events: ['a.*.b', 7], handler },
      handler: { events: ['*'], handler: 'no' },
      others: {
        events: ['*'],
        handler,
        orderBy: 'id',
        schedule: [0],
        inFlightMax: 0,
        hander: 1,
        description: 1,
      },
      nothing: null,
    },
    jobs: {
      none: { run },
      both: { cron: '0 3 * * *', every: '1h', run },
      february: { cron: '0 0 31 2 *', run },
      fields: { cron: '* * * * * *', run },
      date: { cron: '2030-01-01T00:00:00', run },
      minute: { cron: '61 * * * *', run },
      zone: { cron: '0 3 * * *', timeZone: 'Mars/Base', run },
      useless: { every: '1h', timeZone: 'UTC', run },
      period: { every: '15 minutes', run },
      zero: { every: 0, run },
      swapped: { every: 1, rnu: run },
      members: { every: 1, ifMissed: 'maybe', timeoutMs: 1, run: undefined, handler },
    },
  });
  for (const [at, expected] of [
    /^subscriber bad name: the name must be up to 64 letters/,
    /^subscriber events: events must be a list of 1 to 100 patterns.*not undefined$/,
    /^subscriber none: events must be a list of 1 to 100 patterns.*not an empty list$/,
    /^subscriber pattern: events: "a\.\*\.b" may have a \* only after the last dot/,
    /^subscriber pattern: events: 7 must be a text/,
    /^subscriber handler: handler must be a function, not a string/,
    /^subscriber others: "hander" is not a property of a subscriber; did you mean handler/,
    /^subscriber others: orderBy must be a function of the event, not a string/,
    /^subscriber others: description must be a string/,
    /^subscriber others: schedule must be a list/,
    /^subscriber others: inFlightMax must be a whole number/,
    /^subscriber nothing: must be an object, not null/,
    /^job none: must have either cron, such as '0 3 \* \* \*', or every/,
    /^job both: has both cron and every: give one of them$/,
    /^job february: cron "0 0 31 2 \*" names a time that never comes/,
    /^job fields: cron must be five fields.*6 parts/,
    /^job date: cron must be five fields/,
    /^job minute: cron must be five fields.*Invalid value for minute: 61/,
    /^job zone: timeZone must be an IANA name, such as Europe\/Berlin, not "Mars\/Base"/,
    /^job useless: timeZone has no effect without cron/,
    /^job period: every must be a whole number of seconds/,
    /^job zero: every must be a whole number of seconds/,
    /^job swapped: "rnu" is not a property of a job; did you mean run/,
    /^job swapped: run must be a function, not undefined/,
    /^job members: "handler" is not a property of a job/,
    /^job members: run must be a function, not undefined/,
    /^job members: ifMissed must be run or skip/,
    /^job members: timeoutMs must be a whole number from 10/,
  ].entries()) {
    assert.match(found[at] ?? '', expected);
  }
  assert.equal(found.length, 28);
});
