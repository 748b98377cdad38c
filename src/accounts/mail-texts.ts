/**
 * Mails to owners of accounts, about the account or a webhook endpoint: the built-in templates, which a project's templates of the same
 * names replace, and their values. No value contains text from another client, so that Comity cannot be used to send an attacker's words.
 */

import { ConfigurationError } from '../config/inspection.ts';
import { type MailTemplate, parseTemplate } from '../config/mail-templates.ts';
import type { Letter } from '../mail/mail-port.ts';
import { type MailValues, renderTemplate } from '../mail/render-template.ts';
import type { MailCodePurpose } from './mail-code.ts';

export type MailTextOptions = {
  readonly title: string;
  /** Those of the project. */
  readonly templates: ReadonlyMap<string, MailTemplate>;
  /** Pages of the application with a `{code}` placeholder; without one the mail holds the code itself. */
  readonly mailVerificationUrl: string | undefined;
  readonly mailResetUrl: string | undefined;
  readonly verificationCodeSeconds: number;
  readonly resetCodeSeconds: number;
};

export type MailTexts = (purpose: MailCodePurpose, to: string, code: string) => Letter;

const instructionByLink = 'open this page:\n\n{{link}}';
const instructionByCode = 'use this code:\n\n{{code}}';

const verifyEmail = (instruction: string): string => `Subject: {{title}}: confirm your e-mail address

Someone, probably you, used this address for an account at {{title}}.

To confirm it, ${instruction}

It works once, within {{validFor}}. If this was not you, ignore this mail.
`;

const resetPassword = (instruction: string): string => `Subject: {{title}}: set a new password

Someone, probably you, requested a new password for the account with this address at {{title}}.

To set one, ${instruction}

It works once, within {{validFor}}. If this was not you, ignore this mail: your password does not change.
`;

/** @throws ConfigurationError if a template needs a page that no setting gives */
export function createMailTexts(options: MailTextOptions): MailTexts {
  const { templates, mailVerificationUrl, mailResetUrl } = options;
  const title = titleOf(options);
  const byPurpose = {
    verification: {
      template: templateOf(templates, 'verify-email', verifyEmail(instructionFor(mailVerificationUrl))),
      url: mailVerificationUrl,
      setting: 'COMITY_MAIL_VERIFICATION_URL',
      validFor: formatDuration(options.verificationCodeSeconds),
    },
    reset: {
      template: templateOf(templates, 'reset-password', resetPassword(instructionFor(mailResetUrl))),
      url: mailResetUrl,
      setting: 'COMITY_MAIL_RESET_URL',
      validFor: formatDuration(options.resetCodeSeconds),
    },
  };
  for (const { template, url, setting } of Object.values(byPurpose)) {
    if (url === undefined && template.values.has('link'))
      throw new ConfigurationError([
        `the mail template ${template.name} uses {{link}}: set ${setting} to the page of your application`,
      ]);
  }
  return (purpose, to, code) => {
    const { template, url, validFor } = byPurpose[purpose];
    const link = url?.replaceAll('{code}', () => code) ?? '';
    return letterOf(template, to, { title, email: to, code, link, validFor });
  };
}

function instructionFor(url: string | undefined): string {
  return url === undefined ? instructionByCode : instructionByLink;
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

export type EndpointMailTexts = (to: string, facts: EndpointMailFacts) => Letter;

const endpointFailing = `Subject: {{title}}: a webhook endpoint is failing

The webhook endpoint {{endpoint}} at {{origin}} has accepted no delivery since {{since}}.

Delivery attempts continue. If it accepts none for {{disabledAfter}} in total, it will be disabled.

The log of its deliveries shows the errors.
`;

const consequence =
  'It was disabled. Undelivered events are kept for a time and are sent when you enable the endpoint again; events that happen until then can be recovered.';

const endpointDisabled = `Subject: {{title}}: a webhook endpoint was disabled

The webhook endpoint {{endpoint}} at {{origin}} has accepted no delivery since {{since}}.

${consequence}
`;

const endpointGone = `Subject: {{title}}: a webhook endpoint was disabled

The webhook endpoint {{endpoint}} at {{origin}} answered 410 (Gone) at {{since}}, which means that it wants no more events.

${consequence}
`;

/** @param options `title`: name of the application; `endpointDisableSeconds`: how long an endpoint may fail */
export function createEndpointMailTexts(
  options: Pick<MailTextOptions, 'title' | 'templates'> & { readonly endpointDisableSeconds: number },
): EndpointMailTexts {
  const { templates } = options;
  const title = titleOf(options);
  const disabledAfter = formatDuration(options.endpointDisableSeconds);
  const failing = templateOf(templates, 'endpoint-failing', endpointFailing);
  const disabled = templateOf(templates, 'endpoint-disabled', endpointDisabled);
  const gone = templateOf(templates, 'endpoint-gone', endpointGone);
  return (to, { kind, reason, endpointId: endpoint, origin, since }) => {
    const values = { title, endpoint, origin, since, disabledAfter };
    if (kind === 'failing') return letterOf(failing, to, values);
    return letterOf(reason === 'gone' ? gone : disabled, to, values);
  };
}

export function titleOf({ title }: Pick<MailTextOptions, 'title'>): string {
  return title === '' ? 'Comity' : title;
}

export function templateOf(
  templates: ReadonlyMap<string, MailTemplate>,
  name: string,
  builtIn: string,
): MailTemplate {
  const mistakes: string[] = [];
  const template = templates.get(name) ?? parseTemplate(name, builtIn, undefined, mistakes);
  if (template === undefined) throw new Error(mistakes.join('\n'));
  return template;
}

export function letterOf(template: MailTemplate, to: string, values: MailValues): Letter {
  return {
    ...{ to: [to], ...renderTemplate(template, values) },
    ...{ replyTo: null, headers: {}, template: template.name },
  };
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
