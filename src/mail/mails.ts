/** Wires mail: the resource, and the engine that sends what keep-mail.ts kept. */
import { Type } from 'typebox';
import { ConfigurationError } from '../config/inspection.ts';
import type { DeclaredMail } from '../config/mail-templates.ts';
import type { Settings } from '../config/settings.ts';
import { type ActionLimits, actionResource, type Done } from '../kernel/action.ts';
import { type CollectionOperation, representationOf } from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import type { KeptMail } from '../model/kept-mail.ts';
import type { Observe } from '../observe/observation.ts';
import { type MemberStanding, onMember } from '../resources/collection/member.ts';
import { timeAfter } from '../resources/collection/row.ts';
import { type ServedCollection, serveCollection } from '../resources/collection/serve-collection.ts';
import type { Served, Serving } from '../resources/collection/served-collection.ts';
import type { Services } from '../store/capabilities.ts';
import { tryCommit } from '../store/lines.ts';
import type { RetentionRule } from '../store/retention.ts';
import { Overtaken } from '../store/store.ts';
import type { DueWork } from '../work/work-engine.ts';
import { MailSending, mailChange } from './mail-engine.ts';
import { mailContentsTable, mailRetention, mailsCollection } from './mail-tables.ts';
import { createSmtp, type Transport } from './smtp.ts';

export type Mails = {
  readonly builtIn: (serving: Serving) => readonly ServedCollection[];
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  start(): Promise<void>;
  /** Starts no further attempts and waits at most `ms` milliseconds for those under way. */
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
};

/**
 * @param outside takes mails in place of the mail server of the settings
 */
export function createMails(
  services: Services,
  { schedule }: DeclaredMail,
  work: DueWork,
  outside: Transport | undefined,
): Mails {
  const { settings } = services;
  const transport = outside ?? transportOf(services);
  // Without a mail server mails wait: they may have been kept when there was one.
  const engine =
    transport === undefined
      ? undefined
      : new MailSending(services, work, transport, {
          ...{ schedule, attemptsMax: settings.mailAttemptsMax, random: work.uniform },
        });
  return {
    builtIn: (serving) => [mailResources(serving)],
    retention: mailRetention(settings),
    gauges: [['comity_mails_in_flight', 'Mails that are being sent.', () => engine?.inFlight ?? 0]],
    async start() {
      await engine?.start();
    },
    async drain(ms) {
      await engine?.drain(ms);
    },
    async close() {
      await engine?.close();
    },
  };
}

/** The jitter of work/retries.ts. */
const delayFactorMax = 1.1;

/** @throws ConfigurationError if mails could be deleted before their last attempt */
export function refuseLongSchedule(
  schedule: DeclaredMail['schedule'],
  { mailAttemptsMax, mailRetentionSeconds }: Settings,
): void {
  const delays = Array.from(
    { length: mailAttemptsMax - 1 },
    (_, at) => schedule[Math.min(at, schedule.length - 1)] ?? 0,
  );
  const seconds = Math.ceil(delays.reduce((sum, delay) => sum + delay, 0) * delayFactorMax);
  if (seconds <= mailRetentionSeconds) return;
  throw new ConfigurationError([
    `${mailAttemptsMax} attempts to send a mail (COMITY_MAIL_ATTEMPTS_MAX) take up to ${seconds} seconds, but mails are deleted after ${mailRetentionSeconds} (COMITY_MAIL_RETENTION_SECONDS)`,
  ]);
}

function transportOf({ settings, observe }: Services): Transport | undefined {
  const { smtpUrl, development } = settings;
  if (smtpUrl !== undefined) return createSmtp({ ...settings, smtpUrl });
  return development ? createShownMail(observe) : undefined;
}

/** In development without a mail server, the log shows each mail in full, and the mail counts as sent. */
function createShownMail(observe: Observe): Transport {
  return async ({ id, recipients, subject, text, html }) => {
    observe({ kind: 'mail-shown', mail: id, to: recipients.join(', '), subject, text: text ?? html ?? '' });
    return { kind: 'answered', refusals: [] };
  };
}

// `/mails`: the mails that functions and accounts sent, and their state, for administrators. Ids are in the order of creation, so `sort=-id`
// lists the newest first at the cost of one page. Nothing serves their contents, which may hold codes. POST to `/mails/{id}/resend` makes a
// mail due at once, with its whole schedule; the response, 202, comes first.

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

const listNote = 'In the order of creation; `sort=-id` returns the newest first, at the same cost.';

export function mailResources(serving: Serving): ServedCollection {
  const plain = serveCollection(serving, mailsCollection, {
    announced: false,
    operations,
    documentation: {
      names: { singular: 'Mail', plural: 'Mails', one: 'a mail', many: 'mails' },
      audience: 'operator',
      idPrefix: 'mail_',
      revise: { list: (standard) => ({ ...standard, description: listNote }) },
    },
  });
  return { ...plain, resources: [...plain.resources, resendResource(plain.served, serving.settings)] };
}

function resendResource(served: Served, limits: ActionLimits): Resource {
  return actionResource(
    {
      ...onMember(served, 'resend', 'update', 'Id of the mail.'),
      id: 'resendMail',
      summary: 'Send a mail again',
      description:
        'The mail becomes pending and due immediately, for the recipients that have not accepted it, and its schedule of retries restarts. 409 if its content is no longer kept: it is deleted when a mail was sent.',
      input: { name: 'MailResend', schema: Type.Object({}), example: {}, optional: true },
      output: { schema: representationOf(served.collection) },
      answers: 'queued',
      codes: ['content_unavailable'],
      changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
      handler: (_ask, _input, standing) => resend(served, standing),
    },
    limits,
  );
}

async function resend({ store, clock, path }: Served, { row, id }: MemberStanding): Promise<Done> {
  if (row === undefined) throw new Error('a resending requires the row of its mail');
  const current = JSON.parse(row.doc) as KeptMail;
  if (current.status === 'sent' || (await store.read(mailContentsTable, id)) === undefined) {
    const message = 'the content of this mail is no longer kept';
    return { refused: { code: 'content_unavailable', message } };
  }
  const now = new Date(timeAfter(clock, row.updatedAt)).toISOString();
  const mail: KeptMail = {
    ...current,
    ...{ status: 'pending', scheduledAttempts: 0, refused: [], dueAt: now, lastError: null, updatedAt: now },
  };
  const commit = await tryCommit(store, { changes: [mailChange(mail, row.rev)], events: [] });
  if (commit instanceof Overtaken) return commit;
  return { content: mail, queued: `${path}/${id}` };
}
