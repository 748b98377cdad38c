/**
 * What the mails to owners of accounts say, about the account or about a webhook endpoint of theirs. Nothing that a stranger typed stands
 * in one, so that nobody can have us send his words.
 */
import type { MailCodePurpose } from '../accounts/mail-code.ts';
import type { Mail } from '../mail-port.ts';

export type MailTextOptions = {
  /** What the application is called. */
  readonly title: string;
  /** Pages of the application with `{code}` in them; undefined: the mail holds the code alone. */
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
            `Somebody, probably you, gave this address for an account at ${title}.`,
            asked(
              'To confirm it, open this page:',
              'To confirm it, use this code:',
              options.mailVerificationUrl,
              code,
            ),
            `It works once and for ${spokenTime(options.verificationCodeSeconds)}. If it was not you, do nothing.`,
          ),
        }
      : {
          to,
          subject: `${title}: set a new password`,
          text: paragraphs(
            `Somebody, probably you, asked for a new password for the account with this address at ${title}.`,
            asked('To set one, open this page:', 'To set one, use this code:', options.mailResetUrl, code),
            `It works once and for ${spokenTime(options.resetCodeSeconds)}. If it was not you, do nothing: your password stays as it is.`,
          ),
        };
}

/** What a mail about a webhook endpoint may say: no URL, whose path may hold a secret. */
export type EndpointMailFacts = {
  readonly kind: 'failing' | 'disabled';
  /** Why it was disabled, or would be. */
  readonly reason: 'gone' | 'failing';
  readonly endpointId: string;
  /** `https://shop.example` */
  readonly origin: string;
  /** ISO 8601: when it began to fail, or said that it is gone. */
  readonly since: string;
};

export type EndpointMailTexts = (to: string, facts: EndpointMailFacts) => Mail;

/** @param options `title`: what the application is called; `endpointDisableSeconds`: how long an endpoint may fail */
export function createEndpointMailTexts(options: {
  readonly title: string;
  readonly endpointDisableSeconds: number;
}): EndpointMailTexts {
  const title = options.title === '' ? 'Comity' : options.title;
  return (to, { kind, reason, endpointId, origin, since }) => {
    const endpoint = `The webhook endpoint ${endpointId} at ${origin}`;
    const failing = `${endpoint} has accepted nothing since ${since}.`;
    if (kind === 'failing') {
      return {
        to,
        subject: `${title}: a webhook endpoint is failing`,
        text: paragraphs(
          failing,
          `It is tried further. If it accepts nothing for ${spokenTime(options.endpointDisableSeconds)} in all, it will be disabled.`,
          'The log of its deliveries says what went wrong.',
        ),
      };
    }
    return {
      to,
      subject: `${title}: a webhook endpoint was disabled`,
      text: paragraphs(
        reason === 'gone'
          ? `${endpoint} answered 410 (Gone) at ${since}, which says that it wants no more events.`
          : failing,
        'It was disabled. What was not delivered is kept for a time and is sent when you enable the endpoint again; what happens until then can be recovered.',
      ),
    };
  };
}

function asked(byPage: string, byCode: string, url: string | undefined, code: string): string {
  return url === undefined ? `${byCode}\n\n${code}` : `${byPage}\n\n${url.replaceAll('{code}', () => code)}`;
}

function paragraphs(...texts: readonly string[]): string {
  return `${texts.join('\n\n')}\n`;
}

/** In the greatest unit that says it without a rest. */
export function spokenTime(seconds: number): string {
  const [name, length] = units.find((unit) => seconds % unit[1] === 0) ?? ['second', 1];
  const count = seconds / length;
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

const units: readonly (readonly [name: string, seconds: number])[] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];
