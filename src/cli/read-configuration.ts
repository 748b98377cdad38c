/**
 * What most commands begin with: the settings, and the configuration that they name. Settings are read twice,
 * because the first reading says where the configuration is and that may hold settings of its own.
 */
import type { Configuration } from '../config/configuration.ts';
import { loadConfiguration } from '../config/load-configuration.ts';
import {
  type Environment,
  type LoadedSettings,
  loadSettings,
  type WrittenSettings,
} from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';

export type Reading = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly providers: LoadedSettings['providers'];
  readonly warnings: readonly string[];
};

/** @throws ConfigurationError with every mistake in the settings, else every one in the configuration */
export async function readConfiguration(
  environment: Environment,
  options: WrittenSettings,
): Promise<Reading> {
  const { settings: first } = loadSettings(environment, {}, options);
  const { configuration, warnings: ofConfiguration } = await loadConfiguration(first.config);
  const { warnings, ...loaded } = loadSettings(environment, configuration.settings, options);
  return { configuration, ...loaded, warnings: [...warnings, ...ofConfiguration] };
}

/** Tells the warnings on stderr, one a line. */
export function tellWarnings(warnings: readonly string[]): void {
  for (const warning of warnings) console.error(`comity: warning: ${warning}`);
}
