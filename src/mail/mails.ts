/** Wires mail: the resource, and the engine that sends what keep-mail.ts kept. */
import { ConfigurationError } from '../config/inspection.ts';
import type { MailOptions } from '../config/mail-templates.ts';
import type { Settings } from '../config/settings.ts';
import type { Observe } from '../observe/observation.ts';
import type { ServedCollection, Serving } from '../resources/collection/serving.ts';
import type { Services } from '../store/capabilities.ts';
import type { RetentionRule } from '../store/retention.ts';
import type { Lanes } from '../work/lanes.ts';
import type { Starts } from '../work/starts.ts';
import type { Timers } from '../work/timers.ts';
import { type MailEngine, MailSending } from './mail-engine.ts';
import { mailResources } from './mail-routes.ts';
import { mailRetention } from './mail-tables.ts';
import { createSmtp, type Transport } from './smtp.ts';

export type MailsOptions = Pick<Services, 'store' | 'clock' | 'observe'> & {
  readonly configuration: { readonly mail: MailOptions };
  readonly settings: Settings;
  readonly lanes: Lanes;
  readonly starts?: Starts;
  /** In place of the mail server of the settings. */
  readonly outside?: { readonly mail: Transport };
  readonly timers?: Timers;
};

export type Mails = {
  readonly builtIn: (serving: Serving) => readonly ServedCollection[];
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  start(): Promise<void>;
  /** Starts no further attempts and waits at most `ms` milliseconds for those under way. */
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
};

/** @throws ConfigurationError if mails could be deleted before their last attempt */
export function createMails(options: MailsOptions): Mails {
  refuseLongSchedule(options);
  const engine = engineOf(options);
  return {
    builtIn: (serving) => [mailResources(serving)],
    retention: mailRetention(options.settings),
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

/** The jitter of work/schedule.ts. */
const delayFactorMax = 1.1;

function refuseLongSchedule({ configuration, settings }: MailsOptions): void {
  const { mailAttemptsMax, mailRetentionSeconds } = settings;
  const { schedule } = configuration.mail;
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

/** Without a mail server mails wait: they may have been kept when there was one. */
function engineOf(options: MailsOptions): MailEngine | undefined {
  const { configuration, settings } = options;
  const transport = transportOf(options);
  if (transport === undefined) return undefined;
  const { mailAttemptsMax: attemptsMax } = settings;
  const policy = { schedule: configuration.mail.schedule, attemptsMax, random: Math.random };
  return new MailSending({ ...options, ...settings, transport, policy });
}

function transportOf({ settings, observe, outside }: MailsOptions): Transport | undefined {
  if (outside !== undefined) return outside.mail;
  const { smtpUrl } = settings;
  if (smtpUrl !== undefined) return createSmtp({ ...settings, smtpUrl });
  return settings.development ? createShownMail(observe) : undefined;
}

/** In development without a mail server, the log shows each mail in full, and the mail counts as sent. */
function createShownMail(observe: Observe): Transport {
  return async ({ id, recipients, subject, text, html }) => {
    observe({ kind: 'mail-shown', mail: id, to: recipients.join(', '), subject, text: text ?? html ?? '' });
    return { kind: 'answered', refusals: [] };
  };
}
