/**
 * Every setting of the program (§8), each with its unit, default, bounds and meaning: the one table that the loader,
 * the type `Settings` and docs/reference/settings.md come from. Rooms get the few values they need, never the table.
 *
 * Each setting has one environment variable, named by rule (`bodyBytesMax` is COMITY_BODY_BYTES_MAX), and one
 * name in `settings` of the configuration. A limit that is not here does not exist: no room has bounds of its own
 * that an operator could want to move.
 */
import type { ValueOf } from './setting.ts';
import { accountsSettings, mailSettings } from './settings/accounts.ts';
import { http2Settings, realtimeSettings, tlsSettings, tunnelSettings } from './settings/connections.ts';
import { egressSettings } from './settings/egress.ts';
import { limitsSettings, memorySettings } from './settings/limits.ts';
import { listeningSettings } from './settings/listening.ts';
import { listsSettings } from './settings/lists.ts';
import { postgresSettings } from './settings/postgres.ts';
import { programSettings } from './settings/program.ts';
import { requestsSettings } from './settings/requests.ts';
import { sendersSettings } from './settings/senders.ts';
import { storeSettings } from './settings/store.ts';
import { webhooksSettings } from './settings/webhooks.ts';

export const settings = {
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
  ...storeSettings,
  ...postgresSettings,
};

export type SettingName = keyof typeof settings;

/** The value of every setting, checked. */
export type Settings = { readonly [N in SettingName]: ValueOf<(typeof settings)[N]> };

/** Values given in code or in the configuration; each is checked like an environment variable. */
export type SettingOverrides = { readonly [N in SettingName]?: Settings[N] | undefined };

/** The environment variable of a setting: `bodyBytesMax` is `COMITY_BODY_BYTES_MAX`. */
export function variableOf(name: string): string {
  let variable = 'COMITY_';
  for (const character of name) {
    const begins = character >= 'A' && character <= 'Z';
    variable += begins ? `_${character}` : character.toUpperCase();
  }
  return variable;
}
