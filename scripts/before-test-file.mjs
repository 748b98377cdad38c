/**
 * Loaded before each test file by scripts/test.ts: ends the process when the file has not ended by itself in time.
 * Node bounds a test, but not a file that waits before its first test or that leaves a socket open after its last.
 * And has it import the schema library as the program does.
 */
import { useTypeboxBundle } from '../src/typebox-bundle.ts';

useTypeboxBundle();

const boundMs = Number(process.env.COMITY_TEST_FILE_MS);

const timer = setTimeout(() => {
  const open = process.getActiveResourcesInfo().join(', ');
  console.error(`This file has not ended within ${boundMs / 1000} s. Still open: ${open}`);
  process.exit(1);
}, boundMs);

// The bound itself must not keep a process alive.
timer.unref();
