/**
 * Every setting and every fixed bound (§8) with its unit, default, bounds and meaning: the loader, the type `Settings`,
 * docs/reference/settings.md and the fixed bounds of docs/reference/limits.md are derived from this table. Folders receive the few values they
 * need, never the table.
 *
 * Each setting has one environment variable (`bodyBytesMax` is COMITY_BODY_BYTES_MAX) and one name in `settings` of the configuration. A
 * limit is a setting if operators need different values of it, and a fixed bound otherwise.
 */
import { defaultsOf, type ValueOf } from './setting.ts';
import { accountsSettings, mailSettings } from './settings/accounts.ts';
import {
  egressSettings,
  http2Settings,
  listeningSettings,
  programSettings,
  realtimeSettings,
  tlsSettings,
  tunnelSettings,
} from './settings/connections.ts';
import { filesSettings } from './settings/files.ts';
import { limitsSettings, listsSettings, memorySettings, requestsSettings } from './settings/requests.ts';
import { migrationsSettings, postgresSettings, storeSettings } from './settings/store.ts';
import { sendersSettings, webhooksSettings } from './settings/webhooks.ts';

const rows = {
  ...programSettings,
  ...listeningSettings,
  ...tlsSettings,
  ...http2Settings,
  ...requestsSettings,
  ...limitsSettings,
  ...memorySettings,
  ...accountsSettings,
  ...mailSettings,
  ...webhooksSettings,
  ...sendersSettings,
  ...egressSettings,
  ...realtimeSettings,
  ...tunnelSettings,
  ...listsSettings,
  ...migrationsSettings,
  ...storeSettings,
  ...postgresSettings,
  ...filesSettings,
};

type Rows = typeof rows;

export type SettingName = {
  [N in keyof Rows]: Rows[N] extends { readonly kind: 'fixed' } ? never : N;
}[keyof Rows];

type BoundName = Exclude<keyof Rows, SettingName>;

/** The rows that operators set. */
export const settings = pick<SettingName>((kind) => kind !== 'fixed');

/** Settings that lead to contradicting processes when they differ. */
export const commonSettings = Object.entries(settings).flatMap(([name, row]) =>
  'isCommon' in row ? [name as SettingName] : [],
);

/** The rows whose value no operator sets. */
export const fixedBounds = pick<BoundName>((kind) => kind === 'fixed');

export type Settings = { readonly [N in keyof Rows]: ValueOf<Rows[N]> };

/** The settings of a program that sets none. */
export const defaultSettings: Settings = defaultsOf(rows);

/** Values from code or the configuration, which are checked like environment variables. */
export type SettingOverrides = { readonly [N in SettingName]?: Settings[N] | undefined };

function pick<N extends keyof Rows>(is: (kind: string) => boolean): Pick<Rows, N> {
  const picked = Object.entries(rows).filter(([, { kind }]) => is(kind));
  // The entries are those of the type: each is named by the kind of its row.
  return Object.fromEntries(picked) as Pick<Rows, N>;
}

/** The environment variable of a setting: `bodyBytesMax` is `COMITY_BODY_BYTES_MAX`. */
export function variableOf(name: string): string {
  let variable = 'COMITY_';
  for (const character of name) {
    const begins = character >= 'A' && character <= 'Z';
    variable += begins ? `_${character}` : character.toUpperCase();
  }
  return variable;
}
