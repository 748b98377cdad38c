/**
 * Texts of the mails to owners of accounts, about the account or a webhook endpoint. No mail contains text from another client, so that
 * Comity cannot be used to send an attacker's words.
 */

import type { Mail } from '../mail/mail-port.ts';
import type { MailCodePurpose } from './mail-code.ts';

export type MailTextOptions = {
  readonly title: string;
  /** Pages of the application with a `{code}` placeholder; without one the mail holds the code itself. */
  readonly mailVerificationUrl: string | undefined;
  readonly mailResetUrl: string | undefined;
  readonly verificationCodeSeconds: number;
  readonly resetCodeSeconds: number;
};

export type MailTexts = (purpose: MailCodePurpose, to: string, code: string) => Mail;

export function createMailTexts(options: MailTextOptions): MailTexts {
  const title = options.title === '' ? 'Comity' : options.title;
  return (purpose, to, code) =>
    purpose === 'verification'
      ? {
          to,
          subject: `${title}: confirm your e-mail address`,
          text: paragraphs(
            `Someone, probably you, used this address for an account at ${title}.`,
            instruction(
              'To confirm it, open this page:',
              'To confirm it, use this code:',
              options.mailVerificationUrl,
              code,
            ),
            `It works once, within ${formatDuration(options.verificationCodeSeconds)}. If this was not you, ignore this mail.`,
          ),
        }
      : {
          to,
          subject: `${title}: set a new password`,
          text: paragraphs(
            `Someone, probably you, requested a new password for the account with this address at ${title}.`,
            instruction(
              'To set one, open this page:',
              'To set one, use this code:',
              options.mailResetUrl,
              code,
            ),
            `It works once, within ${formatDuration(options.resetCodeSeconds)}. If this was not you, ignore this mail: your password does not change.`,
          ),
        };
}

/** Facts about a webhook endpoint for a mail; no URL, because its path may hold a secret. */
export type EndpointMailFacts = {
  readonly kind: 'failing' | 'disabled';
  readonly reason: 'gone' | 'failing';
  readonly endpointId: string;
  readonly origin: string;
  /** ISO 8601: the first failure, or the time of the 410. */
  readonly since: string;
};

export type EndpointMailTexts = (to: string, facts: EndpointMailFacts) => Mail;

/** @param options `title`: name of the application; `endpointDisableSeconds`: how long an endpoint may fail */
export function createEndpointMailTexts(options: {
  readonly title: string;
  readonly endpointDisableSeconds: number;
}): EndpointMailTexts {
  const title = options.title === '' ? 'Comity' : options.title;
  return (to, { kind, reason, endpointId, origin, since }) => {
    const endpoint = `The webhook endpoint ${endpointId} at ${origin}`;
    const failing = `${endpoint} has accepted no delivery since ${since}.`;
    if (kind === 'failing') {
      return {
        to,
        subject: `${title}: a webhook endpoint is failing`,
        text: paragraphs(
          failing,
          `Delivery attempts continue. If it accepts none for ${formatDuration(options.endpointDisableSeconds)} in total, it will be disabled.`,
          'The log of its deliveries shows the errors.',
        ),
      };
    }
    return {
      to,
      subject: `${title}: a webhook endpoint was disabled`,
      text: paragraphs(
        reason === 'gone'
          ? `${endpoint} answered 410 (Gone) at ${since}, which means that it wants no more events.`
          : failing,
        'It was disabled. Undelivered events are kept for a time and are sent when you enable the endpoint again; events that happen until then can be recovered.',
      ),
    };
  };
}

function instruction(byPage: string, byCode: string, url: string | undefined, code: string): string {
  return url === undefined ? `${byCode}\n\n${code}` : `${byPage}\n\n${url.replaceAll('{code}', () => code)}`;
}

function paragraphs(...texts: readonly string[]): string {
  return `${texts.join('\n\n')}\n`;
}

/** Formats a duration in the largest unit that divides it. */
export function formatDuration(seconds: number): string {
  const [name, length] = units.find((unit) => seconds % unit[1] === 0) ?? ['second', 1];
  const count = seconds / length;
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

const units: readonly (readonly [name: string, seconds: number])[] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];
