/**
 * Reads the settings: command line before environment before configuration before default. Every value is checked against its row in
 * settings.ts, and all mistakes are reported at once. No message repeats a secret. `shownSettings` lists them for an administrator.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { inspect } from 'node:util';
import { bucketDefaults, bucketMistakes, bucketWarnings } from './files-url.ts';
import { ConfigurationError, suggestion } from './inspection.ts';
import {
  isClientSecretVariable,
  isProviderVariable,
  type OAuthProvider,
  readOAuthProviders,
} from './oauth-providers.ts';
import { secretKeyLines } from './refusals.ts';
import type { FixedBound, Setting } from './setting.ts';
import {
  fixedBounds,
  type SettingName,
  type SettingOverrides,
  type Settings,
  settings,
  variableOf,
} from './settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Values as written in a shell. */
export type WrittenSettings = { readonly [N in SettingName]?: string | undefined };

export type LoadedSettings = {
  readonly settings: Settings;
  /** OpenID providers by name; the operator chooses the names of their variables. */
  readonly providers: ReadonlyMap<string, OAuthProvider>;
  /** Where each value comes from that was set. */
  readonly sources: ReadonlyMap<string, SettingSource>;
  /** Sentences about ignored or unwise values, which do not prevent a start. */
  readonly warnings: readonly string[];
};

type SettingSource = 'default' | 'configuration' | 'environment' | 'command line';

type Source = {
  readonly from: SettingSource;
  readonly label: string;
  readonly value: unknown;
  readonly written: boolean;
};

const echoCharactersMax = 64;
const keyCharactersAdvised = 24;

/** Variables of the commands that call a running server (cli/server-client.ts, cli/listen); the server does not read them. */
const clientVariables: ReadonlySet<string> = new Set(['COMITY_URL', 'COMITY_KEY', 'COMITY_LISTEN_SECRET']);

/** Variables with secrets, each of which a file can hold instead. */
const secretVariables: ReadonlySet<string> = new Set([
  ...Object.entries<Setting>(settings)
    .filter(([, setting]) => setting.kind === 'text' && setting.secret)
    .map(([name]) => variableOf(name)),
  ...['COMITY_KEY', 'COMITY_LISTEN_SECRET'],
]);

/** True if `NAME_FILE` may name a file in place of the variable. sender-secrets.ts handles those of senders. */
function isSecretVariable(variable: string): boolean {
  return secretVariables.has(variable) || isClientSecretVariable(variable);
}

/**
 * @param given variables by name; an empty one counts as unset
 * @param configured `settings` of the configuration, or what code passes
 * @param commandLine options, which take precedence over everything
 * @throws ConfigurationError with every mistake
 */
export function loadSettings(
  given: Environment,
  configured: SettingOverrides = {},
  commandLine: WrittenSettings = {},
): LoadedSettings {
  const mistakes: string[] = [];
  const warnings: string[] = [];
  const environment = withSecretFiles(given, isSecretVariable, mistakes);
  inspectNames(environment, configured, mistakes, warnings);
  const values: Record<string, unknown> = {};
  const sources = new Map<string, SettingSource>();
  for (const [name, setting] of Object.entries<Setting>(settings)) {
    const source = sourceOf(name as SettingName, environment, configured, commandLine);
    if (source !== undefined) sources.set(name, source.from);
    const complaint = source === undefined ? undefined : refusal(setting, source);
    if (source !== undefined && complaint !== undefined) mistakes.push(`${source.label} ${complaint}`);
    values[name] =
      source === undefined || complaint !== undefined ? setting.default : readValue(setting, source);
  }
  for (const [name, { value }] of Object.entries<FixedBound>(fixedBounds)) values[name] = value;
  // Each row of the table yields its own kind of value, so the record has the type derived from the table.
  const loaded = withBucketDefaults(values as Settings, environment, sources);
  const providers = readOAuthProviders(environment, mistakes);
  if (mistakes.length === 0) compare(loaded, mistakes);
  if (mistakes.length > 0) throw new ConfigurationError(mistakes);
  if (loaded.adminKey !== undefined && loaded.adminKey.length < keyCharactersAdvised) {
    warnings.push(
      `the administrator key has fewer than ${keyCharactersAdvised} characters and could be guessed`,
    );
  }
  if (loaded.verifiedEmailRequired && loaded.smtpUrl === undefined) {
    warnings.push(
      'COMITY_VERIFIED_EMAIL_REQUIRED is on and COMITY_SMTP_URL is not set: only an OpenID provider or an administrator can verify an address',
    );
  }
  warnings.push(...sendingWarnings(loaded), ...bucketWarnings(loaded));
  return { settings: loaded, providers, sources, warnings };
}

function inspectNames(
  environment: Environment,
  configured: SettingOverrides,
  mistakes: string[],
  warnings: string[],
): void {
  const variables = new Set(Object.keys(settings).map(variableOf));
  const bounds = new Map(Object.entries<FixedBound>(fixedBounds));
  const boundsByVariable = new Map([...bounds].map(([name, bound]) => [variableOf(name), bound]));
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith('COMITY_') || value === undefined || value === '') continue;
    if (variables.has(variable) || isProviderVariable(variable) || clientVariables.has(variable)) continue;
    const bound = boundsByVariable.get(variable);
    if (bound !== undefined) mistakes.push(`${variable} ${fixedText(bound)}`);
    else warnings.push(`${variable} is not a setting and was ignored${suggestion(variable, variables)}`);
  }
  for (const name of Object.keys(configured)) {
    if (Object.hasOwn(settings, name)) continue;
    const bound = bounds.get(name);
    const why =
      bound === undefined ? `is not a setting${suggestion(name, Object.keys(settings))}` : fixedText(bound);
    mistakes.push(`settings.${name} ${why}`);
  }
}

function fixedText({ unit, value }: FixedBound): string {
  return `is not a setting: the bound is always ${value} ${unit}; remove it`;
}

function sourceOf(
  name: SettingName,
  environment: Environment,
  configured: SettingOverrides,
  commandLine: WrittenSettings,
): Source | undefined {
  const variable = variableOf(name);
  const written = environment[variable];
  if (commandLine[name] !== undefined)
    return { from: 'command line', label: `--${name}`, value: commandLine[name], written: true };
  if (written !== undefined && written !== '')
    return { from: 'environment', label: variable, value: written, written: true };
  if (configured[name] !== undefined) {
    return { from: 'configuration', label: `settings.${name}`, value: configured[name], written: false };
  }
  return undefined;
}

/** Why the value is refused, as the predicate of a sentence; undefined for a valid one. */
function refusal(setting: Setting, { value, written }: Source): string | undefined {
  const not = `, not ${echo(value)}`;
  switch (setting.kind) {
    case 'integer': {
      const number = written ? readInteger(String(value)) : value;
      const fits =
        Number.isInteger(number) && Number(number) >= setting.least && Number(number) <= setting.most;
      return fits ? undefined : `must be an integer from ${setting.least} to ${setting.most}${not}`;
    }
    case 'switch':
      if (written) return value === 'on' || value === 'off' ? undefined : `must be on or off${not}`;
      return typeof value === 'boolean' ? undefined : `must be true or false${not}`;
    case 'choice':
      if (setting.choices.some((known) => known === value)) return undefined;
      return `must be one of ${setting.choices.join(', ')}${not}`;
    case 'text':
      if (typeof value !== 'string') return setting.secret ? 'must be a string' : `must be a string${not}`;
      if (value.length > setting.charactersMax)
        return `must have at most ${setting.charactersMax} characters`;
      return value === '' ? undefined : setting.refuse(value);
  }
}

function readValue(setting: Setting, { value, written }: Source): unknown {
  if (setting.kind === 'text') return setting.normalize(String(value));
  if (!written) return value;
  if (setting.kind === 'integer') return readInteger(String(value));
  return setting.kind === 'switch' ? value === 'on' : value;
}

/** A plain decimal integer; NaN for anything else, so that `0x10`, `1e3` and ` 5` are not guessed at. */
function readInteger(written: string): number {
  const digits = written.startsWith('-') ? written.slice(1) : written;
  if (digits === '' || digits.length > 15) return Number.NaN;
  for (const digit of digits) if (digit < '0' || digit > '9') return Number.NaN;
  return Number(written);
}

function sendingWarnings(loaded: Settings): readonly string[] {
  const longest = Math.max(loaded.resendSeconds, loaded.resendCommandLineSeconds);
  return (['eventRetentionSeconds', 'deliveryRetentionSeconds'] as const)
    .filter((name) => loaded[name] < longest)
    .map(
      (name) =>
        `${variableOf(name)} is ${loaded[name]}, shorter than the ${longest} seconds in which a delivery may be sent again: deleted events and deliveries cannot be`,
    );
}

function withBucketDefaults(
  loaded: Settings,
  environment: Environment,
  sources: Map<string, SettingSource>,
): Settings {
  const found = bucketDefaults(loaded, environment);
  for (const [name, value] of Object.entries(found))
    if (value !== undefined && !sources.has(name)) sources.set(name, 'environment');
  return { ...loaded, ...found };
}

/** Reports settings that contradict each other. */
function compare(loaded: Settings, mistakes: string[]): void {
  mistakes.push(...bucketMistakes(loaded));
  if (loaded.secretKeyPrevious !== undefined && loaded.secretKey === undefined) {
    mistakes.push('COMITY_SECRET_KEY_PREVIOUS is set without COMITY_SECRET_KEY, which must hold the new key');
  }
  if (loaded.listLimitDefault > loaded.listLimitMax) {
    mistakes.push(
      `listLimitDefault (${loaded.listLimitDefault}) must not be over listLimitMax (${loaded.listLimitMax})`,
    );
  }
  if (loaded.headersTimeoutMs > loaded.requestTimeoutMs) {
    mistakes.push(
      `headersTimeoutMs (${loaded.headersTimeoutMs}) must not be over requestTimeoutMs (${loaded.requestTimeoutMs})`,
    );
  }
  if (loaded.targetBytesMax >= loaded.fieldsBytesMax) {
    mistakes.push(
      `targetBytesMax (${loaded.targetBytesMax}) must be under fieldsBytesMax (${loaded.fieldsBytesMax}), which counts the request line too`,
    );
  }
  if (loaded.webhookLeaseMs < 1.5 * loaded.webhookTimeoutMs) {
    mistakes.push(
      `webhookLeaseMs (${loaded.webhookLeaseMs}) must be at least one and a half times webhookTimeoutMs (${loaded.webhookTimeoutMs}), so that an attempt ends within its lease`,
    );
  }
  if (loaded.corsOrigins.trim() === '*' && loaded.corsCredentials === 'on') {
    mistakes.push(
      'COMITY_CORS_CREDENTIALS is on and COMITY_CORS_ORIGINS is *, a combination that browsers refuse: list the origins',
    );
  }
  for (const name of ['corsHeaders', 'corsExpose'] as const) {
    const mayCredentials = loaded.corsOrigins.trim() !== '*' && loaded.corsCredentials !== 'off';
    if (!mayCredentials || !loaded[name].split(',').some((field) => field.trim() === '*')) continue;
    mistakes.push(
      `${name} is *, which browsers take only from pages without credentials: list the fields, or set COMITY_CORS_CREDENTIALS=off`,
    );
  }
  if (loaded.memoryBytesMax > 0 && loaded.memoryBytesMax < memoryBytesMin) {
    mistakes.push(
      `memoryBytesMax (${loaded.memoryBytesMax}) must be 0 or at least ${memoryBytesMin}: with less, Comity could not answer every request that its other limits allow`,
    );
  }
  compareTls(loaded, mistakes);
}

/** The same bound as for the default, in src/memory/program-memory.ts. */
const memoryBytesMin = 16 * 1024 * 1024;

/** Credentials cross a network encrypted or not at all. */
function compareTls(loaded: Settings, mistakes: string[]): void {
  const { tlsCert, tlsKey, tlsPort, host, behindProxy } = loaded;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    mistakes.push('COMITY_TLS_CERT and COMITY_TLS_KEY must be set together');
  } else if (tlsPort !== undefined && tlsCert === undefined) {
    mistakes.push('COMITY_TLS_PORT needs COMITY_TLS_CERT and COMITY_TLS_KEY');
  }
  if (behindProxy || isLoopback(host)) return;
  if (tlsCert === undefined) {
    mistakes.push(
      `COMITY_HOST is ${echo(host)}, which is not a loopback address, so credentials would cross the network unencrypted: ` +
        'set COMITY_TLS_CERT and COMITY_TLS_KEY, put a proxy that speaks TLS in front and set COMITY_BEHIND_PROXY=on, or listen on 127.0.0.1',
    );
  } else if (tlsPort !== undefined) {
    mistakes.push(
      `COMITY_HOST is ${echo(host)}, which is not a loopback address, and COMITY_TLS_PORT leaves COMITY_PORT without TLS: ` +
        'remove COMITY_TLS_PORT, so that COMITY_PORT uses TLS, or set COMITY_BEHIND_PROXY=on',
    );
  }
}

function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === 'localhost';
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8, 'ipv4');
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** The value as a person would write it, cut to fit a terminal line. */
function echo(value: unknown): string {
  const whole =
    typeof value === 'string' ? JSON.stringify(value) : inspect(value, { breakLength: Infinity, depth: 1 });
  return whole.length <= echoCharactersMax ? whole : `${whole.slice(0, echoCharactersMax)}...`;
}

// Secrets in files: `NAME_FILE` names a file with the value of `NAME`, as orchestrators mount secrets. No message repeats the content of a
// file.

const suffix = '_FILE';
const finalLineBreak = /\r?\n$/;
const bytesMax = 65_536;

/**
 * The environment, with the content of each such file under the name of its secret.
 * @param isSecret whether a variable, without the suffix, holds a secret
 * @param mistakes receives a sentence for each unusable file
 */
export function withSecretFiles(
  environment: Environment,
  isSecret: (variable: string) => boolean,
  mistakes: string[],
): Environment {
  const found: Record<string, string | undefined> = { ...environment };
  for (const [variable, path] of Object.entries(environment)) {
    if (!variable.endsWith(suffix) || path === undefined || path === '') continue;
    const name = variable.slice(0, -suffix.length);
    if (!isSecret(name)) continue;
    delete found[variable];
    if ((environment[name] ?? '') !== '') {
      mistakes.push(`${name} and ${variable} are both set; set only one of them`);
      continue;
    }
    const content = contentOf(path);
    if ('fault' in content) mistakes.push(`${variable} names the file ${path}, which ${content.fault}`);
    else found[name] = content.text;
  }
  takeKeyFile(found);
  return found;
}

/** The program's own `secret.key` has a comment, and after a rotation the keys that are still in use as well. */
function takeKeyFile(found: Record<string, string | undefined>): void {
  const { COMITY_SECRET_KEY: key = '', COMITY_SECRET_KEY_PREVIOUS: previous = '' } = found;
  const [first, ...others] = secretKeyLines(key);
  const older = [...others, ...secretKeyLines(previous)];
  if (key.startsWith('#') || others.length > 0) found.COMITY_SECRET_KEY = first;
  if (previous.startsWith('#') || older.length > 1 || others.length > 0)
    found.COMITY_SECRET_KEY_PREVIOUS = older.join(',');
}

function contentOf(path: string): { readonly text: string } | { readonly fault: string } {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    if (fstatSync(file).isDirectory()) return { fault: 'is a folder' };
    const octets = Buffer.alloc(bytesMax + 1);
    let read = 0;
    for (let more = -1; more !== 0 && read < octets.length; read += more) {
      more = readSync(file, octets, read, octets.length - read, null);
    }
    if (read > bytesMax) return { fault: `is longer than ${bytesMax} bytes` };
    const text = octets.toString('utf8', 0, read).replace(finalLineBreak, '');
    return text === '' ? { fault: 'is empty' } : { text };
  } catch (error) {
    return { fault: `cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

export type ShownSetting = {
  readonly name: string;
  readonly variable: string;
  readonly section: string;
  readonly meaning: string;
  readonly unit: string | null;
  /** Null for a secret, and for a text that is not set. */
  readonly value: string | number | boolean | null;
  readonly default: string | number | boolean | null;
  readonly source: SettingSource;
  readonly secret: boolean;
};

/** @param sources of the settings that are not at their defaults by themselves; absent: what differs was set by code */
export function shownSettings(
  values: Settings,
  sources: ReadonlyMap<string, SettingSource> = new Map(),
): readonly ShownSetting[] {
  return Object.entries<Setting>(settings).map(([name, setting]) => {
    const value = values[name as SettingName] ?? null;
    const secret = setting.kind === 'text' && setting.secret;
    return {
      name,
      variable: variableOf(name),
      section: setting.section,
      meaning: setting.meaning,
      unit: setting.kind === 'integer' ? setting.unit : null,
      value: secret ? null : value,
      default: setting.default ?? null,
      source: sources.get(name) ?? (value === (setting.default ?? null) ? 'default' : 'configuration'),
      secret,
    };
  });
}
