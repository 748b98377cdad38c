/**
 * Reads the settings, the configuration that they name, and the secrets of its senders. Settings are read twice,
 * because the first reading locates the configuration, which may contain settings of its own.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Configuration } from '../config/configuration.ts';
import { loadConfiguration } from '../config/load-configuration.ts';
import {
  type Environment,
  type LoadedSettings,
  loadSettings,
  type WrittenSettings,
} from '../config/load-settings.ts';
import { readSenderSecrets } from '../config/sender-secrets.ts';
import type { DeclaredSender } from '../config/senders.ts';
import type { Settings } from '../config/settings.ts';
import type { Terminal } from './terminal.ts';

export type Reading = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly providers: LoadedSettings['providers'];
  /** Secrets of senders whose variables are set, by variable. */
  readonly senderSecrets: ReadonlyMap<string, readonly string[]>;
  /** URL of the configuration file, which threads of handlers import. */
  readonly module: string;
  readonly warnings: readonly string[];
};

/** @throws ConfigurationError with all mistakes in the settings, else in the configuration, else in senders' secrets */
export async function readConfiguration(
  environment: Environment,
  options: WrittenSettings,
): Promise<Reading> {
  const { settings: first } = loadSettings(environment, {}, options);
  const { configuration, warnings: ofConfiguration } = await loadConfiguration(first.config);
  const { warnings, ...loaded } = loadSettings(environment, configuration.settings, options);
  const { senders } = configuration;
  const ofSenders = warningsOf(senders, loaded.settings);
  const senderSecrets = readSenderSecrets(environment, senders, (sentence) => ofSenders.push(sentence));
  const module = pathToFileURL(resolve(first.config)).href;
  const all = [
    ...warnings,
    ...ofConfiguration,
    ...ofSenders,
    ...warningsOfMail(configuration, loaded.settings),
  ];
  return { configuration, ...loaded, senderSecrets, module, warnings: all };
}

/** Warns if a signature covers the URL, which a proxy in front changes. */
function warningsOf(senders: ReadonlyMap<string, DeclaredSender>, { publicUrl }: Settings): string[] {
  if (publicUrl !== undefined) return [];
  return [...senders.values()]
    .filter(({ rule: { signature } }) => signature.kind === 'hmac' && signature.signed.includes('{url}'))
    .map(
      ({ name }) =>
        `sender ${name} signs the URL that it calls: set COMITY_PUBLIC_URL to the origin of that URL, if it is not the address of this program`,
    );
}

function warningsOfMail({ mail }: Configuration, { smtpUrl, development }: Settings): readonly string[] {
  if (!mail.isDeclared || smtpUrl !== undefined) return [];
  return [
    development
      ? 'mails of functions are only shown in the log, because there is no mail server: set COMITY_SMTP_URL'
      : 'mails of functions are refused, because there is no mail server: set COMITY_SMTP_URL',
  ];
}

export function tellWarnings(terminal: Terminal, warnings: readonly string[]): void {
  for (const warning of warnings) terminal.err(`comity: warning: ${warning}`);
}
