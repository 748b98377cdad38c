/** What a command with work under way does on the first SIGINT or SIGTERM, in place of ending at once. */

/** @returns the way to go back to ending at once */
export function onInterrupt(act: () => void): () => void {
  process.once('SIGINT', act).once('SIGTERM', act);
  return () => {
    process.off('SIGINT', act).off('SIGTERM', act);
  };
}
