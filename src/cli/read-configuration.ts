/**
 * Reads the settings, the configuration that they name, and the secrets of its senders. Settings are read twice,
 * because the first reading locates the configuration, which may contain settings of its own.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Configuration } from '../config/configuration.ts';
import { attempt, ConfigurationError } from '../config/inspection.ts';
import { loadConfiguration } from '../config/load-configuration.ts';
import {
  type Environment,
  type LoadedSettings,
  loadSettings,
  type WrittenSettings,
} from '../config/load-settings.ts';
import { readSenderSecrets } from '../config/sender-secrets.ts';
import type { DeclaredSender } from '../config/senders.ts';
import { type SettingOverrides, type Settings, settings } from '../config/settings.ts';
import { readTraceTarget, type TraceTarget } from '../observe/tracing.ts';
import { signsUrl } from '../webhooks/signature/signature-rule.ts';
import type { Terminal } from './terminal.ts';

export type Reading = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly providers: LoadedSettings['providers'];
  readonly sources?: LoadedSettings['sources'];
  /** Secrets of senders whose variables are set, by variable. */
  readonly senderSecrets: ReadonlyMap<string, readonly string[]>;
  /** URL of the configuration file, which threads of handlers import. */
  readonly module: string;
  readonly warnings: readonly string[];
  readonly traceTarget?: TraceTarget | undefined;
};

/** @throws ConfigurationError with all mistakes in the settings, the configuration and the secrets of senders */
export async function readConfiguration(
  environment: Environment,
  options: WrittenSettings,
): Promise<Reading> {
  const mistakes: ConfigurationError[] = [];
  const first = await attempt(mistakes, () => loadSettings(environment, {}, options));
  const path =
    first?.settings.config ?? options.config ?? (environment.COMITY_CONFIG || settings.config.default);
  const loaded = await attempt(mistakes, () => loadConfiguration(path));
  // The settings are read again with those of the configuration, also of one with mistakes, and tell all of their own.
  const configured: SettingOverrides | undefined =
    loaded === undefined ? mistakes.at(-1)?.settings : loaded.configuration.settings;
  const reading =
    configured === undefined
      ? undefined
      : await attempt(mistakes, () => loadSettings(environment, configured, options));
  const senders = loaded?.configuration.senders;
  const ofSenders =
    senders === undefined || reading === undefined ? [] : warningsOf(senders, reading.settings);
  const senderSecrets =
    senders === undefined
      ? undefined
      : await attempt(mistakes, () =>
          readSenderSecrets(environment, senders, (sentence) => ofSenders.push(sentence)),
        );
  const traces = await attempt(mistakes, () => ({ target: readTraceTarget(environment) }));
  if (loaded === undefined || reading === undefined || senderSecrets === undefined || traces === undefined)
    throw await together(path, mistakes);
  const module = pathToFileURL(resolve(path)).href;
  const ofMail = warningsOfMail(loaded.configuration, reading.settings);
  const all = [...reading.warnings, ...loaded.warnings, ...ofSenders, ...ofMail];
  const { settings: found, providers, sources } = reading;
  return {
    ...{ configuration: loaded.configuration, settings: found, providers, sources },
    ...{ senderSecrets, module, warnings: all, traceTarget: traces?.target },
  };
}

async function together(path: string, errors: readonly ConfigurationError[]): Promise<ConfigurationError> {
  const { placeMistakes } = await import('../config/declaration-places.ts');
  const mistakes = [...new Set(errors.flatMap((error) => error.mistakes))];
  const placed = mistakes.map((mistake) =>
    mistake.startsWith('settings.') ? placeMistakes(path, [mistake]) : [mistake],
  );
  return new ConfigurationError((await Promise.all(placed)).flat(), {
    cause: errors.find(({ cause }) => cause !== undefined)?.cause,
  });
}

/** Warns if a signature covers the URL, which a proxy in front changes. */
function warningsOf(senders: ReadonlyMap<string, DeclaredSender>, { publicUrl }: Settings): string[] {
  if (publicUrl !== undefined) return [];
  return [...senders.values()]
    .filter(({ rule: { signature } }) => signsUrl(signature))
    .map(
      ({ name }) =>
        `sender ${name} signs the URL that it calls: set COMITY_PUBLIC_URL to the part of that URL before the path of the API, if it is not the address of this program`,
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

/** Returns the settings, without the database's URL if the embedded store is meant. */
export function chosenStore(settings: Settings, options: WrittenSettings): Settings {
  return options.data === undefined ? settings : { ...settings, databaseUrl: undefined };
}
