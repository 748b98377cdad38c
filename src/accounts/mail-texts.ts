/**
 * Mails to owners of accounts, about the account, its second factor or a webhook endpoint: the built-in templates, which a project's
 * templates of the same names replace, and their values. No value contains text from another client, so that Comity cannot be used to
 * send an attacker's words.
 */
import { ConfigurationError } from '../config/inspection.ts';
import { type MailTemplate, parseTemplate } from '../config/mail-templates.ts';
import { type Settings, variableOf } from '../config/settings.ts';
import { type Letter, type MailPort, type MailValues, renderTemplate } from '../mail/keep-mail.ts';
import type { Change } from '../store/store.ts';
import type { User } from './account-tables.ts';

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

const invitation = (instruction: string): string => `Subject: {{title}}: your invitation

You have an account at {{title}}, with this address.

To begin, ${instruction}

It works once, within {{validFor}}.
`;

const login =
  (subject: string) =>
  (instruction: string): string =>
    `Subject: {{title}}: ${subject}

Someone, probably you, wants to log in at {{title}} with this address.

To continue in the browser that asked, ${instruction}

It works once, within {{validFor}}. If this was not you, ignore this mail, and pass it on to nobody.
`;

const emailChanged = (instruction: string): string => `Subject: {{title}}: your e-mail address was changed

The account at {{title}} that had this address has another one now.

If this was not you, take it back: ${instruction}

It works once, within {{validFor}}, and ends all sessions of the account.
`;

/** The template, the page and the lifetime of each kind of code; the page has a `{code}` placeholder. */
const codeMails = {
  verification: {
    ...{ template: 'verify-email', text: verifyEmail },
    ...({ page: 'mailVerificationUrl', seconds: 'verificationCodeSeconds' } as const),
  },
  /** Goes to an address that the account does not have yet. */
  address: {
    ...{ template: 'verify-email', text: verifyEmail },
    ...({ page: 'mailVerificationUrl', seconds: 'verificationCodeSeconds' } as const),
  },
  /** Goes to the address that the account had before. */
  undo: {
    ...{ template: 'email-changed', text: emailChanged },
    ...({ page: 'mailUndoUrl', seconds: 'emailUndoSeconds' } as const),
  },
  reset: {
    ...{ template: 'reset-password', text: resetPassword },
    ...({ page: 'mailResetUrl', seconds: 'resetCodeSeconds' } as const),
  },
  invitation: {
    ...{ template: 'invitation', text: invitation },
    ...({ page: 'mailInvitationUrl', seconds: 'invitationCodeSeconds' } as const),
  },
  code: {
    ...{ template: 'login-code', text: login('your code is {{code}}') },
    ...({ page: undefined, seconds: 'mailLoginSeconds' } as const),
  },
  link: {
    ...{ template: 'login-link', text: login('log in') },
    ...({ page: 'mailLoginUrl', seconds: 'mailLoginSeconds' } as const),
  },
};

export type MailCodePurpose = keyof typeof codeMails;

export const mailCodePurposes = Object.keys(codeMails) as readonly MailCodePurpose[];
/** Those of a login by mail. */
export const loginPurposes = ['code', 'link'] as const satisfies readonly MailCodePurpose[];

/** The members of the application that mails show. */
type Application = {
  readonly title: string;
  /** Those of the project. */
  readonly templates: ReadonlyMap<string, MailTemplate>;
};

type CodeSettings = Pick<Settings, NonNullable<(typeof codeMails)[MailCodePurpose]['page' | 'seconds']>>;

export function secondsOfCode(settings: CodeSettings, purpose: MailCodePurpose): number {
  return settings[codeMails[purpose].seconds];
}

export type MailTexts = (purpose: MailCodePurpose, to: string, code: string) => Letter;

/** @throws ConfigurationError if a template needs a page that no setting gives */
export function createMailTexts(application: Application, settings: CodeSettings): MailTexts {
  const { templates } = application;
  const title = titleOf(application);
  const byPurpose = Object.fromEntries(
    mailCodePurposes.map((purpose) => {
      const { template: name, text, page } = codeMails[purpose];
      const url = page && settings[page];
      const template = templateOf(
        templates,
        name,
        text(url === undefined ? instructionByCode : instructionByLink),
      );
      if (page !== undefined && url === undefined && template.values.has('link'))
        throw new ConfigurationError([
          `the mail template ${template.name} uses {{link}}: set ${variableOf(page)} to the page of your application`,
        ]);
      return [
        purpose,
        { template, url, validFor: formatDuration(secondsOfCode(settings, purpose)) },
      ] as const;
    }),
  );
  return (purpose, to, code) => {
    const known = byPurpose[purpose];
    if (known === undefined) throw new Error(`no mail has codes for ${purpose}`);
    const { template, url, validFor } = known;
    const link = url?.replaceAll('{code}', () => code) ?? '';
    return letterOf(template, to, { title, email: to, code, link, validFor });
  };
}

/** Facts about a webhook endpoint for a mail; no URL, because its path may hold a secret. */
type EndpointMailFacts = {
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

export function createEndpointMailTexts(
  application: Application,
  { endpointDisableSeconds }: Pick<Settings, 'endpointDisableSeconds'>,
): EndpointMailTexts {
  const { templates } = application;
  const title = titleOf(application);
  const disabledAfter = formatDuration(endpointDisableSeconds);
  const failing = templateOf(templates, 'endpoint-failing', endpointFailing);
  const disabled = templateOf(templates, 'endpoint-disabled', endpointDisabled);
  const gone = templateOf(templates, 'endpoint-gone', endpointGone);
  return (to, { kind, reason, endpointId: endpoint, origin, since }) => {
    const values = { title, endpoint, origin, since, disabledAfter };
    if (kind === 'failing') return letterOf(failing, to, values);
    return letterOf(reason === 'gone' ? gone : disabled, to, values);
  };
}

/** The name of the application, as people see it. */
export function titleOf({ title }: Pick<Application, 'title'>): string {
  return title === '' ? 'Comity' : title;
}

function templateOf(
  templates: ReadonlyMap<string, MailTemplate>,
  name: string,
  builtIn: string,
): MailTemplate {
  const mistakes: string[] = [];
  const template = templates.get(name) ?? parseTemplate(name, builtIn, undefined, mistakes);
  if (template === undefined) throw new Error(mistakes.join('\n'));
  return template;
}

function letterOf(template: MailTemplate, to: string, values: MailValues): Letter {
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

/** The mail about a change of the second factor, so that its owner notices a change by someone else. */
export type FactorMail = (user: Pick<User, 'email'>, news: FactorNews, at: number) => readonly Change[];

export type FactorNews = keyof typeof sentences;

const sentences = {
  'totp-added': 'An authenticator application was added to your account.',
  'totp-removed': 'The authenticator application was removed from your account.',
  'passkey-added': 'A passkey was added to your account.',
  'passkey-removed': 'A passkey was removed from your account.',
  'codes-created': 'New recovery codes were created for your account. The earlier ones no longer work.',
  'code-used': 'A recovery code of your account was used.',
  reset: 'An administrator removed the second factor of your account and ended its sessions.',
} as const;

const factorChanged = `Subject: {{title}}: the second factor of your account

{{change}}

Time: {{at}}

If this was not you, change your password, and ask an administrator of {{title}} for help.
`;

/**
 * @param port undefined without a mail server
 * @returns the changes that keep the mail, for the unit that it reports
 */
export function createFactorMail(
  application: Application,
  port: Pick<MailPort, 'keep'> | undefined,
): FactorMail {
  const title = titleOf(application);
  const template = templateOf(application.templates, 'second-factor-changed', factorChanged);
  return (user, news, at) => {
    if (port === undefined) return [];
    const values = { title, change: sentences[news], at: new Date(at).toISOString() };
    return port.keep(letterOf(template, user.email, values));
  };
}
