/** Selects the store of a command if both are configured: a folder on the command line outranks the environment. */
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';

/** Returns the settings, without the database's URL if the embedded store is meant. */
export function chosenStore(settings: Settings, options: WrittenSettings): Settings {
  return options.data === undefined ? settings : { ...settings, databaseUrl: undefined };
}
