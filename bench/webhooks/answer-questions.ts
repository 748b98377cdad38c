/** The other end of part.ts: a process that says that it is ready, and then answers each question with what a function makes of it. */

export function answerQuestions<Question>(answer: (question: Question) => Promise<object>): void {
  process.on('message', (question: Question) => {
    answer(question).then(
      (said) => process.send?.(said),
      (error: unknown) => process.send?.({ failure: error instanceof Error ? error.stack : String(error) }),
    );
  });
  // Whoever measures is gone: nothing is left to do.
  process.on('disconnect', () => process.exit(0));
  process.send?.({});
}

/** Milliseconds since the epoch with their fractions: the same clock in every process of the machine, to about a millisecond. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
