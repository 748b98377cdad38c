/** Wires mail: the resource, and the engine that sends what keep-mail.ts kept. */
import type { MailOptions } from '../config/mail-templates.ts';
import type { Settings } from '../config/settings.ts';
import type { Observe } from '../observe/observation.ts';
import type { ServedCollection, Serving } from '../resources/collection/serving.ts';
import type { Services } from '../store/capabilities.ts';
import type { RetentionRule } from '../store/retention.ts';
import type { Lanes } from '../work/lanes.ts';
import type { Timers } from '../work/timers.ts';
import { type MailEngine, MailSending } from './mail-engine.ts';
import { mailResources } from './mail-routes.ts';
import { mailRetention } from './mail-tables.ts';
import { createSmtp, type Transport } from './smtp.ts';

export type MailsOptions = Pick<Services, 'store' | 'clock' | 'observe'> & {
  readonly configuration: { readonly mail: MailOptions };
  readonly settings: Settings;
  readonly lanes: Lanes;
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

export function createMails(options: MailsOptions): Mails {
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
