/** What a handler threw, as the log of attempts tells it: the first line, and the place in the user's own file. No stack. */
import type { Failure } from './protocol.ts';

const characters = 500;

/** Errors are known by name: a handler may have brought another copy of this package. */
export function failureOf(error: unknown, module: string): Failure {
  if (!(error instanceof Error)) {
    return { error: 'thrown', message: String(error).slice(0, characters), permanent: false };
  }
  const [line = ''] = error.message.split('\n', 1);
  if (error.name === 'UnprocessableMessage') {
    return { error: 'unprocessable', message: line.slice(0, characters), permanent: true };
  }
  if (error.name === 'ResourceRefused' && 'code' in error) {
    return {
      error: 'refused',
      message: `${String(error.code)}: ${line}`.slice(0, characters),
      permanent: false,
    };
  }
  const place = placeOf(error, module);
  const told = `${error.name}: ${line}`;
  const message = place === undefined ? told : `${told.slice(0, characters - place.length - 3)} (${place})`;
  return { error: 'thrown', message: message.slice(0, characters), permanent: false };
}

/** `comity.config.ts:12:5`: the first frame in the folder of the configuration, outside of packages. */
function placeOf({ stack = '' }: Error, module: string): string | undefined {
  if (!URL.canParse('.', module)) return undefined;
  const folder = new URL('.', module).href;
  for (const frame of stack.split('\n')) {
    const start = frame.indexOf(folder);
    if (start < 0 || frame.includes('/node_modules/')) continue;
    const end = frame.endsWith(')') ? frame.length - 1 : frame.length;
    return frame.slice(start + folder.length, end);
  }
  return undefined;
}
