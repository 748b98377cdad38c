/**
 * One set-up at a time: a lock folder that is made by its holder, kept fresh while the work goes on, and removed.
 * A folder that was not touched for `staleMs` was left by a process that was killed; it is taken over.
 * Runs on plain Node 20, like setup.mjs. It does not guard against a machine that sleeps in the middle of the work.
 */
import { mkdirSync, rmdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const freshenMs = 1000;
const staleMs = 15_000;
const pollMs = 100;

/** Runs the work while holding the lock; waits as long as another process holds it and is alive. */
export async function withSetupLock(path, work) {
  for (let told = false; !makeFolder(path); ) {
    if (isStale(path)) takeOver(path);
    else {
      if (!told) console.error('Another process is setting up; waiting for it ...');
      told = true;
      await delay(pollMs);
    }
  }
  const release = () => rmSync(path, { recursive: true, force: true });
  const freshen = setInterval(() => utimesSync(path, new Date(), new Date()), freshenMs);
  process.once('exit', release);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const stop = () => process.exit(1);
  for (const signal of signals) process.once(signal, stop);
  try {
    await work();
  } finally {
    clearInterval(freshen);
    process.off('exit', release);
    for (const signal of signals) process.off(signal, stop);
    release();
  }
}

/**
 * Removes a stale lock. A second folder makes sure that only one process does it at a time: without it, two that saw
 * the same stale lock could each remove one, the second of them the lock that the first has just taken.
 */
function takeOver(path) {
  const taking = `${path}.taking`;
  if (!makeFolder(taking)) {
    if (isStale(taking)) rmSync(taking, { recursive: true, force: true });
    return;
  }
  try {
    if (isStale(path)) rmSync(path, { recursive: true, force: true });
  } finally {
    rmdirSync(taking);
  }
}

function makeFolder(path) {
  try {
    mkdirSync(path);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function isStale(path) {
  try {
    return Date.now() - statSync(path).mtimeMs > staleMs;
  } catch {
    return false; // Gone: it can be taken at the next try.
  }
}
