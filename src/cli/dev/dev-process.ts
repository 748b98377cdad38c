/** A process of `comity dev`: `comity serve`, which reports what it imports, shows each request, and stops at a message. */
import { registerHooks } from 'node:module';
import { join, sep } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { createDeveloperLog } from '../../observe/developer-log.ts';
import { packageRoot } from '../../package-version.ts';
import { exitCodes } from '../failure.ts';
import { serve } from '../serve.ts';
import type { Terminal } from '../terminal.ts';
import { type FromProcess, firstVariable, type ToProcess } from './dev-messages.ts';

export function serveForDeveloper(terminal: Terminal): Promise<number> {
  followImports();
  const { [firstVariable]: first, ...environment } = terminal.environment;
  const opening = Promise.withResolvers<void>();
  const stopping = Promise.withResolvers<string>();
  let isOpen = false;
  const onStop = (reason: string): void => {
    // Nothing is open that could be closed, and a configuration that never ends to load would wait for ever.
    if (!isOpen) process.exit(exitCodes.done);
    stopping.resolve(reason);
  };
  process.on('message', (message: ToProcess) => {
    if (message === 'stop') return onStop('comity dev');
    isOpen = true;
    opening.resolve();
  });
  // Nothing else ends this process once the session has ended.
  process.on('disconnect', () => onStop('the end of comity dev'));
  const onConfigured = (): Promise<void> => {
    tell({ kind: 'configured' });
    return opening.promise;
  };
  const show = createDeveloperLog((line) => terminal.err(line));
  const onStarted = (url: string): void => tell({ kind: 'started', url });
  const { promise: stop } = stopping;
  const developer = { stop, show, onConfigured, onStarted, isFirst: first === 'yes' };
  return serve({ ...terminal, environment }, {}, developer);
}

/** Reports each file that is imported from now on, but for those of Comity and of packages. */
function followImports(): void {
  const own = ['dist', 'src'].map((folder) => join(packageRoot(), folder, sep));
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:') && !url.includes('/node_modules/')) {
        const file = fileURLToPath(url.split('?', 1)[0] ?? url);
        if (!own.some((folder) => file.startsWith(folder))) tell({ kind: 'imported', file });
      }
      return next(url, context);
    },
  });
}

function tell(message: FromProcess): void {
  process.send?.(message);
}
