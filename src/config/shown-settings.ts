/** Settings as an administrator reads them: value, default and source. A secret shows only if it is set. */
import type { SettingSource } from './load-settings.ts';
import type { Setting } from './setting.ts';
import { type SettingName, type Settings, settings, variableOf } from './settings.ts';

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
