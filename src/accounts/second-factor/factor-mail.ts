/** The mail that tells the owner of an account about a change of its second factor, so that a change by someone else is noticed. */
import type { MailTemplate } from '../../config/mail-templates.ts';
import type { MailPort } from '../../mail/mail-port.ts';
import type { Change } from '../../store/store.ts';
import type { User } from '../account-tables.ts';
import { letterOf, templateOf, titleOf } from '../mail-texts.ts';

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

const builtIn = `Subject: {{title}}: the second factor of your account

{{change}}

Time: {{at}}

If this was not you, change your password, and ask an administrator of {{title}} for help.
`;

/** @param options.port undefined without a mail server @returns the changes that keep the mail, for the unit that it tells about */
export function createFactorMail(options: {
  readonly port: Pick<MailPort, 'keep'> | undefined;
  readonly title: string;
  readonly templates: ReadonlyMap<string, MailTemplate>;
}): FactorMail {
  const { port, templates } = options;
  const title = titleOf(options);
  const template = templateOf(templates, 'second-factor-changed', builtIn);
  return (user, news, at) => {
    if (port === undefined) return [];
    const values = { title, change: sentences[news], at: new Date(at).toISOString() };
    return port.keep(letterOf(template, user.email, values));
  };
}
