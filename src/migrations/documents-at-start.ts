/**
 * Documents at the start of a program: judged before anything else is opened, migrated before it serves, or beside it if it serves
 * documents as they are.
 */
import type { Store } from '../store/store.ts';
import {
  judgeAtStart,
  type MigrateDocumentsOptions,
  migrateDocuments,
  runsAtStart,
  type StartOptions,
} from './migrate-documents.ts';

export type DocumentsAtStart = {
  /** Makes what is pending, unless it is served meanwhile. @param store appends events with their deliveries */
  beforeServing(store: Store): Promise<void>;
  /** Begins to make what is pending, beside requests. */
  besideServing(store: Store): void;
  /** Ends what runs beside requests, after its batch. */
  stop(): Promise<void>;
};

/** @throws DocumentsUnfit */
export async function judgeDocumentsAtStart(options: StartOptions): Promise<DocumentsAtStart> {
  const { serveUnmigrated, observe } = options;
  const findings = await judgeAtStart(options);
  const isWanted = findings.length > 0 && runsAtStart(options, findings);
  const stopping = new AbortController();
  let running: Promise<unknown> | undefined;
  const run = (store: Store, isAlone: boolean) => {
    const isBeside = serveUnmigrated;
    const signal = stopping.signal;
    const migrating: MigrateDocumentsOptions = { ...options, store, isAlone, isBeside, signal };
    return migrateDocuments(migrating);
  };
  return {
    async beforeServing(store) {
      if (isWanted && !serveUnmigrated) await run(store, !store.shared);
    },
    besideServing(store) {
      if (!isWanted || !serveUnmigrated) return;
      running = run(store, false).catch((error: unknown) => {
        if (!stopping.signal.aborted) observe({ kind: 'operation-failed', operation: 'migration', error });
      });
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
