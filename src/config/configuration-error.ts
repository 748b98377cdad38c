/**
 * What is wrong with a configuration, in plain sentences: every mistake that was found, not the first alone,
 * so that a person mends them in one go. The command line prints them without a stack and exits 2.
 */

export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  /** One sentence each, without a final period. */
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[], options: { readonly cause?: unknown } = {}) {
    super(mistakes.join('\n'), options);
    this.mistakes = mistakes;
  }
}
