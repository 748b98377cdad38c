/** What a configuration or the settings get wrong, as the program would list it. */
import { ConfigurationError } from '../../src/config/inspection.ts';

/** The mistakes that the call throws; none if it succeeds. Any other error is thrown on. */
export function mistakesFrom(act: () => unknown): readonly string[] {
  try {
    act();
  } catch (error) {
    if (error instanceof ConfigurationError) return error.mistakes;
    throw error;
  }
  return [];
}
