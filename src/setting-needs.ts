/**
 * Settings that a configuration needs, or that contradict it. The start refuses by these checks, and `comity check` reports by the same, with
 * every mistake at once.
 */
import { createMailTexts } from './accounts/mail-texts.ts';
import { createRelyingParty } from './accounts/second-factor/passkeys/webauthn.ts';
import type { Configuration } from './config/configuration.ts';
import { attempt, ConfigurationError } from './config/inspection.ts';
import type { Settings } from './config/settings.ts';
import { placeMistake } from './files/open-place.ts';
import { previewsMistake } from './files/previews.ts';
import { refuseLongSchedule } from './mail/mails.ts';

/** @throws ConfigurationError with all mistakes */
export async function refuseUnmetNeeds(configuration: Configuration, settings: Settings): Promise<void> {
  const { mail, title } = configuration;
  const errors: ConfigurationError[] = [];
  const checks = [
    () => refuse(ownIssuerMistake(configuration, settings), linkMistake(configuration, settings)),
    () => createMailTexts({ title, templates: mail.templates }, settings),
    () => createRelyingParty(settings, title, () => anyOrigin),
    () => refuseLongSchedule(mail.schedule, settings),
    async () => refuse(...(await fileMistakes(configuration, settings))),
  ];
  for (const check of checks) await attempt(errors, check);
  if (errors.length > 0) throw new ConfigurationError(errors.flatMap(({ mistakes }) => mistakes));
}

/** Stands for the address of a listener, which no setting contradicts. */
const anyOrigin = 'http://localhost';

function refuse(...mistakes: readonly (string | undefined)[]): void {
  const found = mistakes.filter((mistake) => mistake !== undefined);
  if (found.length > 0) throw new ConfigurationError(found);
}

function ownIssuerMistake({ issuers }: Configuration, { publicUrl }: Settings): string | undefined {
  const isOwn = issuers.some(({ issuer }) => issuer === publicUrl);
  return isOwn ? 'issuers names COMITY_PUBLIC_URL, whose tokens are our own' : undefined;
}

function linkMistake({ accounts }: Configuration, { mailLoginUrl }: Settings): string | undefined {
  if (!accounts.passwordless.link || mailLoginUrl !== undefined) return undefined;
  return 'accounts.passwordless.link needs the page of your application that the link opens: set COMITY_MAIL_LOGIN_URL, such as https://app.example/enter#{code}';
}

async function fileMistakes(
  { collections }: Configuration,
  settings: Settings,
): Promise<readonly (string | undefined)[]> {
  const fields = [...collections.values()].flatMap(({ name, files }) =>
    [...(files?.values() ?? [])].map((field) => ({ ...field, name: `${name}.${field.name}` })),
  );
  if (fields.length === 0) return [];
  const previewed = fields.filter(({ rule }) => rule.previews !== undefined).map(({ name }) => name);
  return [placeMistake(settings), await previewsMistake(previewed)];
}
