/**
 * Shows requests to a developer (`comity dev`): a line each, the trace of one that failed, and the errors of the application's functions
 * with their place. Only `path` of an exchange is shown, which has no query, since that may hold a credential.
 */
import type { Observation } from './observation.ts';
import { createSourceStacks } from './source-stack.ts';

const firstRefusal = 400;
const durationDigits = 1;
const placeIndent = '    at ';

/** The folder of the bundle, or of the sources. */
const ownFolder = new URL(import.meta.url.endsWith('.ts') ? '..' : '.', import.meta.url).href;

/** @returns true for what it has printed */
export function createDeveloperLog(print: (line: string) => void): (observation: Observation) => boolean {
  const sourceStack = createSourceStacks();
  return (observation) => {
    switch (observation.kind) {
      case 'answered':
        for (const line of requestLines(observation)) print(line);
        return true;
      case 'failed':
        print(failureText(observation.error, sourceStack));
        return true;
      case 'function-failed':
        for (const line of functionLines(observation)) print(line);
        return true;
      case 'handler-thread-ended':
        print(`a thread was ended (${observation.reason}): ${observation.senders.join(', ')}`);
        return true;
      case 'nested-hook-failed':
        print(`in a write of a function: ${failureText(observation.error, sourceStack)}`);
        return true;
      case 'function-escaped':
        print(`${observation.named} failed where nothing awaits it:`);
        print(failureText(observation.error, sourceStack));
        return true;
      case 'listening':
      case 'draining':
      case 'stopped':
      case 'store-opened':
        return true;
      default:
        return false;
    }
  };
}

function requestLines({ method, route, status, code, durationMs, exchange }: Answered): readonly string[] {
  const { path = route, caller = 'anonymous', trace } = exchange;
  const reason = code === undefined ? '' : ` ${code}`;
  const line = `${method} ${path} ${status}${reason} ${durationMs.toFixed(durationDigits)} ms ${caller}`;
  return status < firstRefusal || trace === undefined ? [line] : [line, `  ${trace}`];
}

type Answered = Extract<Observation, { kind: 'answered' }>;

/** The frames outside of Comity; the reason ends with the first of them that is in the folder of the configuration. */
function functionLines(failed: FunctionFailed): readonly string[] {
  const { sender, attempt, failure, reason, nextAt, frames = '' } = failed;
  const next = nextAt === null ? 'failed for good' : `failed, again at ${nextAt}`;
  const line = `${sender} ${next} (attempt ${attempt}, ${failure})${reason === null ? '' : `: ${reason}`}`;
  const own = frames.split('\n').filter((each) => each.startsWith(placeIndent) && isForeign(each));
  return [line, ...own];
}

type FunctionFailed = Extract<Observation, { kind: 'function-failed' }>;

function isForeign(line: string): boolean {
  return !line.includes(ownFolder) && !line.includes('(node:') && !line.includes(' node:');
}

/** The innermost cause is the error of the application's function. Of its stack the places outside of Comity are shown. */
function failureText(error: unknown, sourceStack: (stack: string) => string): string {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  const told = error instanceof Error ? error.message : String(error);
  const stack = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  const lines = stack.split('\n').filter(isForeign);
  const places = lines.some((line) => line.startsWith(placeIndent)) ? lines.join('\n') : sourceStack(stack);
  return cause === error ? places : `${told}\n${places}`;
}
