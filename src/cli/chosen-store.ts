/** Which store a command is about, where both are settled: a folder named on the command line outranks the environment. */
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';

/** The settings, without the URL of the database where the embedded store is meant. */
export function chosenStore(settings: Settings, options: WrittenSettings): Settings {
  return options.data === undefined ? settings : { ...settings, databaseUrl: undefined };
}
